"""Tools that talk to the client while they run, and tools that answer at once."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.types import (
    AudioContent,
    ContentBlock,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from pydantic import BaseModel, Field

from agentdouble import Context, MCPApp
from tests.mcp_official.everything import forms, media

WATCHED = "test://watched-resource"


class User(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Annotated[str, Field(json_schema_extra={"enum": ["active", "inactive", "pending"]})] = (
        "active"
    )
    verified: bool = True


def register(app: MCPApp) -> None:
    """Add the tools to an application."""

    @app.tool
    async def test_tool_with_logging(ctx: Context) -> str:
        """Log three lines, one after the other."""
        for line in ("execution started", "processing data", "execution completed"):
            await ctx.info(f"Tool {line}")
        return "Tool with logging executed."

    @app.tool
    async def test_logging_tool(ctx: Context) -> str:
        """Log a line, which nobody gets who has not asked for it."""
        await ctx.info("A line")
        return "Logged."

    @app.tool
    async def test_tool_with_progress(ctx: Context) -> str:
        """Report progress from 0 to 100."""
        for progress in (0, 50, 100):
            await ctx.report_progress(progress, 100, f"Completed step {progress} of 100")
        return "Tool with progress executed."

    @app.tool
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Have the client's model answer a prompt."""
        answer: Any = await ctx.sample(prompt, max_tokens=100)
        return f"LLM response: {answer.text}"

    @app.tool
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Ask the user for a name and an address."""
        return f"User response: {await ctx.elicit(message, User)}"

    @app.tool
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Ask the user with a default for each kind of field."""
        return f"Elicitation completed: {await ctx.elicit('Review and update', Defaults)}"

    @app.tool
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Ask the user to choose, in each way there is."""
        # a form with every way to choose is more than a model can say
        answer: ElicitResult = await ctx.session.elicit_form(
            "Choose", forms.CHOICES, related_request_id=ctx.request_id
        )
        return f"Elicitation completed: {answer.action}"

    @app.tool
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Tell listeners that the list of tools has changed."""
        await ctx.notify_tools_changed()
        return "Tools changed."

    @app.tool
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Tell listeners that the list of prompts has changed."""
        await ctx.notify_prompts_changed()
        return "Prompts changed."

    @app.tool
    async def change_watched_resource(ctx: Context) -> str:
        """Tell who watches the watched resource that it has changed."""
        await ctx.notify_resource_updated(WATCHED)
        return "Resource changed."

    @app.tool
    def test_simple_text() -> str:
        """Answer a text."""
        return "This is a simple text response for testing."

    @app.tool
    def test_image_content() -> ImageContent:
        """Answer a picture."""
        return media.image_content()

    @app.tool
    def test_audio_content() -> AudioContent:
        """Answer a sound."""
        return media.audio_content()

    @app.tool
    def test_embedded_resource() -> EmbeddedResource:
        """Answer a resource."""
        text = "This is an embedded resource content."
        return media.resource_content("test://embedded-resource", "text/plain", text)

    @app.tool
    def test_multiple_content_types() -> list[ContentBlock]:
        """Answer a text, a picture and a resource."""
        data = '{"test":"data","value":123}'
        return [
            TextContent(text="Multiple content types test:"),
            media.image_content(),
            media.resource_content("test://mixed-content-resource", "application/json", data),
        ]

    @app.tool
    def test_error_handling() -> str:
        """Raise."""
        raise ValueError("This tool intentionally returns an error for testing")

    @app.tool
    def region_of_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Have an argument that is also sent as a header."""
        return f"Region: {region}"
