"""Agents: their messages and events, their directory, and the loops that run them.

An agent is ``async def root_agent(message: Message, session: Session)`` and yields texts, Parts and
Events.
"""

from agentdouble.agents.agent import Event, Message, Part, Session

__all__ = ["Event", "Message", "Part", "Session"]
