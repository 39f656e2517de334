"""A second agent, for checks that two applications are separate. It identifies itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Message, Session


async def root_agent(message: Message, _session: Session) -> AsyncIterator[str]:
    """Echo the message, and say which application answered."""
    yield f"the second application: {message.text}"
