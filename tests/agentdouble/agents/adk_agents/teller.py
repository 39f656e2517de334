"""An ADK agent that returns the state of its session."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from google.genai import types

started = threading.Event()
go = threading.Event()


class Teller(BaseAgent):  # type: ignore[misc,unused-ignore]
    """The agent."""

    async def _run_async_impl(self, context: Any) -> AsyncIterator[Event]:
        text = context.user_content.parts[0].text
        if text == "nothing":
            return
        if text == "block":
            started.set()
            go.wait(30)
        events = [
            f"{event.author}: {event.content.parts[0].text}"
            for event in context.session.events
            if event.content
        ]
        facts = {
            "events": events,
            "count": len(context.session.events),
            "state": context.session.state,
        }
        delta = {"turns": context.session.state.get("turns", 0) + 1, "temp:x": 1, "user:u": [1]}
        yield Event(
            author=self.name,
            invocation_id=context.invocation_id,
            content=types.Content(role="model", parts=[types.Part(text=json.dumps(facts))]),
            actions=EventActions(state_delta=delta),
        )
        if text == "raise":
            raise RuntimeError("it broke")


root_agent = Teller(name="teller")
