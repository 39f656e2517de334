"""Repeat the message."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Message, Session


async def root_agent(message: Message, session: Session) -> AsyncIterator[str]:
    """Answer with the message's text."""
    yield message.text
