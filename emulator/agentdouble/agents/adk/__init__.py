"""Agents and apps of Google's ADK, run by ADK's own runner if google-adk is installed.

``application.py`` has the one runner of an application, whose services read and write the server's
sessions and artifacts. Its
``converse`` lets the same agents answer without a server of sessions, in A2A applications.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from agentdouble.agents.adk.application import AdkApplication, converse
from agentdouble.agents.agent import Agent, Message, Session, WireEvent
from agentdouble.agents.framework import is_instance_of

__all__ = ["adk_agent", "is_app"]

# By name, because only agents that use google-adk import it.
_APP = ("google.adk.apps.app", "App")
_ROOTS = (
    ("google.adk.agents.base_agent", "BaseAgent"),
    ("google.adk.workflow._base_node", "BaseNode"),  # workflows and other nodes, from 2.0 on
)


def is_app(value: object) -> bool:
    """Return whether a value is an App of ADK."""
    return is_instance_of(value, *_APP)


def adk_agent(root: object, app: str) -> Agent | None:
    """Return an agent, a node or an App of ADK as an Agent, or None for other objects."""
    if not is_app(root) and not any(is_instance_of(root, *names) for names in _ROOTS):
        return None
    native: Any = root
    agent = native.root_agent if is_app(root) else native

    async def run(message: Message, session: Session) -> AsyncIterator[WireEvent]:
        async for event in converse(native, app, message, session):
            yield event

    opened = partial(AdkApplication, native, app)
    return Agent(agent.name, run, agent.description or "", native, opened)
