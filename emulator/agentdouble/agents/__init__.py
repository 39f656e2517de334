"""Agents: their messages and events, their directory, and the loops that run them.

An agent is ``async def root_agent(message: Message, session: Session)`` and yields texts, Parts and
Events. ``agent`` has these classes. ``directory`` finds the applications of an agents directory and
imports them with ``application_imports``. ``loops`` runs each application on its own event loop.
``framework`` is the interface to frameworks with a runner of their own, and ``adk`` implements it
for Google's ADK. ``shipped`` is the agents directory that agentdouble ships.

This package may import ``journal``, ``server`` and ``core``. It knows no surface and no
server of sessions.
"""

from agentdouble.agents.agent import Event, Message, Part, Session

__all__ = ["Event", "Message", "Part", "Session"]
