"""Resources and prompts."""

from __future__ import annotations

import base64
from typing import Any

from mcp.server.mcpserver import UserMessage
from mcp.types import InputRequiredResult

from agentdouble import Context, MCPApp
from tests.mcp_official.everything import forms, media
from tests.mcp_official.everything.round_tools import ask, filled_in


def register(app: MCPApp) -> None:
    """Add both to an application."""
    _register_resources(app)
    _register_prompts(app)


def _register_resources(app: MCPApp) -> None:
    @app.resource("test://static-text")
    def text() -> str:
        """Stand there."""
        return "This is the content of the static text resource."

    @app.resource("test://static-binary", mime_type="image/png")
    def binary() -> bytes:
        """Show a picture."""
        return base64.b64decode(media.picture())

    @app.resource("test://watched-resource")
    async def watched() -> str:
        """Be watched."""
        return "This is the content of the watched resource."

    @app.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> dict[str, Any]:  # noqa: A002 (the suite's name)
        """Answer data by id."""
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def _register_prompts(app: MCPApp) -> None:
    @app.prompt
    def test_simple_prompt() -> str:
        """Say one thing."""
        return "This is a simple prompt for testing."

    @app.prompt
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """Say the arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @app.prompt
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 (as above)
        """Show a resource."""
        text = "Embedded resource content for testing."
        return [media.resource_content(resourceUri, "text/plain", text), "Please process it."]

    @app.prompt
    def test_prompt_with_image() -> list[Any]:
        """Show a picture."""
        return [UserMessage(media.image_content()), UserMessage("Please analyze the image above.")]

    @app.prompt
    def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
        """Ask before saying anything."""
        context = filled_in(ctx.input_responses, "user_context", "context")
        if context is None:
            question = ask("What context should the prompt use?", forms.one_text("context"))
            return InputRequiredResult(input_requests={"user_context": question})
        return f"The context is {context}."
