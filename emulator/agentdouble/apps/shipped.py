"""The shipped agents as applications, so that a double answers something real from the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdouble.agents.coder import answer
from agentdouble.apps.mcp import MCPApp
from agentdouble.apps.simple import SimpleApp


def coder_app() -> SimpleApp:
    """Return the coder as a simple application: it runs the code in ``prompt``."""
    app = SimpleApp("coder")

    @app.entrypoint
    async def run(payload: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        prompt = payload.get("prompt")
        if not isinstance(prompt, str):
            return "Error: Missing required field 'prompt', a string."
        return await answer(prompt)

    return app


def coder_mcp_app() -> MCPApp:
    """Return the coder as the tool of an MCP application."""
    app = MCPApp("coder")

    @app.agent_as_a_tool
    async def coder(prompt: str) -> str:
        """Run the code in the prompt and return what it came to, as Markdown.

        The prompt is code, or text with fenced code blocks, in Python, JavaScript, TypeScript or
        bash. State is kept from call to call.
        """
        return await answer(prompt)

    return app
