"""Begin an answer and fail, to show how a client handles errors."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Event, Message, Part, Session


async def root_agent(message: Message, session: Session) -> AsyncIterator[Event]:
    """Say that it fails, then raise with the message's text."""
    yield Event((Part.of_text("This agent fails."),))
    raise RuntimeError(message.text)
