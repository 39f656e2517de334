"""Agents: what they get and yield, where they are found, on which loops they run.

An agent is ``async def root_agent(message: Message, session: Session)`` and yields texts, Parts and
Events.
"""

from agentdouble.agents.events import Event, Message, Part
from agentdouble.agents.session import Session

__all__ = ["Event", "Message", "Part", "Session"]
