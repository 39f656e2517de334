"""A second agent, so that checks can ask what separates two applications: it says it is another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types


class Second(BaseAgent):
    """Says the message back, and who says so."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        text = "".join(part.text or "" for part in ctx.user_content.parts)
        part = types.Part(text=f"the second application: {text}")
        yield Event(
            invocation_id=ctx.invocation_id,
            author=ctx.agent.name,
            content=types.Content(role="model", parts=[part]),
        )


root_agent = Second(name="doublecheck_second")
