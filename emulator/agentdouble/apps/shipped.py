"""The shipped agents as applications, so that a double answers something real from the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdouble.agents import coder
from agentdouble.apps.simple import SimpleApp


def coder_app() -> SimpleApp:
    """Return the coder as a simple application: it runs the code in ``prompt``."""
    app = SimpleApp("coder")

    @app.entrypoint
    async def run(payload: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        prompt = payload.get("prompt")
        if not isinstance(prompt, str):
            return "Error: Missing required field 'prompt', a string."
        return await coder.answer(prompt)

    return app
