"""An ADK agent that sends one text and counts its turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from google.genai import types


class Said(BaseAgent):  # type: ignore[misc,unused-ignore]
    """The agent."""

    async def _run_async_impl(self, context: Any) -> AsyncIterator[Event]:
        turn_count = context.session.state.get("turns", 0) + 1
        yield Event(
            author=self.name,
            invocation_id=context.invocation_id,
            content=types.Content(role="model", parts=[types.Part(text=f"turn {turn_count}")]),
            actions=EventActions(state_delta={"turns": turn_count}),
        )


root_agent = Said(name="said")
