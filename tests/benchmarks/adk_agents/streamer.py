"""An ADK agent that sends 200 increments, and then the whole text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai import types


class Streamer(BaseAgent):  # type: ignore[misc,unused-ignore]
    """The agent."""

    async def _run_async_impl(self, context: Any) -> AsyncIterator[Event]:
        for _ in range(200):
            yield self._event(context, "word ", partial=True)
        yield self._event(context, "word " * 200)

    def _event(self, context: Any, text: str, **more: Any) -> Event:
        content = types.Content(role="model", parts=[types.Part(text=text)])
        about = {"author": self.name, "invocation_id": context.invocation_id}
        return Event(**about, content=content, **more)


root_agent = Streamer(name="streamer")
