"""A second agent, so that checks can ask what separates two applications: it says it is another."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentdouble.agents import Message, Session


async def root_agent(message: Message, _session: Session) -> AsyncIterator[str]:
    """Say the message back, and who says so."""
    yield f"the second application: {message.text}"
