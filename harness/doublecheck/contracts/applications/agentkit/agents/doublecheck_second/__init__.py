"""A second agent, for checks that two applications are separate. It identifies itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types


class Second(BaseAgent):
    """Echoes the message, and says which application answered."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        parts = ctx.user_content.parts if ctx.user_content else ()
        text = "".join(part.text or "" for part in parts or ())
        part = types.Part(text=f"the second application: {text}")
        yield Event(
            invocation_id=ctx.invocation_id,
            author=ctx.agent.name,
            content=types.Content(role="model", parts=[part]),
        )


root_agent = Second(name="doublecheck_second")
