"""Agents and apps of Google's ADK, run by ADK's own runner if google-adk is installed.

``application.py`` has the one runner of an application, whose services read and write the server's
sessions and artifacts. ``conversation.py`` lets the same agents answer where there is no server of
sessions, in A2A applications.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

from agentdouble.agents.adk.application import AdkApplication
from agentdouble.agents.adk.conversation import converse
from agentdouble.agents.adk.native_runner import check_version, kind_of
from agentdouble.agents.agent import Agent
from agentdouble.agents.events import Message, WireEvent
from agentdouble.agents.session import Session

__all__ = ["adk_agent"]


def adk_agent(root: object, app: str) -> Agent | None:
    """Return an agent, a node or an App of ADK as an Agent, or None for other objects.

    Raises AgentLoadError if google-adk is too old.
    """
    kind, native = kind_of(root), cast(Any, root)
    if kind is None:
        return None
    check_version(app)
    agent = native.root_agent if kind == "app" else native

    async def run(message: Message, session: Session) -> AsyncIterator[WireEvent]:
        async for event in converse(native, app, message, session):
            yield event

    opened = partial(AdkApplication, native, app)
    return Agent(agent.name, run, agent.description or "", native, opened)
