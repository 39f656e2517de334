"""Applications and agents of other frameworks as agents, for the API server and A2A."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agentdouble.agents.adk import adk_agent
from agentdouble.agents.agent import Adapter, Agent, Message, Session, as_agent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.simple import SimpleApp
from agentdouble.errors import AgentLoadError


def simple_agent(root: object, app: str) -> Agent | None:
    """Return a SimpleApp as an agent, or None for other objects; raise AgentLoadError.

    Its entrypoint gets the text of the message as ``prompt``, and ``user_id`` and ``session_id`` as
    headers.
    """
    if not isinstance(root, SimpleApp):
        return None
    entrypoint = root.registered
    if entrypoint is None:
        raise AgentLoadError(f"The SimpleApp of {app!r} has no entrypoint.", app=app)

    async def run(message: Message, session: Session) -> AsyncIterator[str]:
        headers = {"user_id": session.user_id, "session_id": session.id}
        value = entrypoint({"prompt": message.text}, headers)
        if inspect.iscoroutine(value):
            value = await value
        if inspect.isasyncgen(value):
            async for chunk in value:
                yield _text(chunk)
        elif inspect.isgenerator(value):
            for chunk in value:
                yield _text(chunk)
        else:
            yield _text(value)

    return Agent(root.name, run, inspect.getdoc(entrypoint) or "")


def _text(value: Any) -> str:
    """Return the value of an entrypoint as text; a value that is not a string becomes JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


ADAPTERS: Sequence[Adapter] = (simple_agent, adk_agent)


async def agent_of(runner: object, app: str, directory: AgentsDirectory) -> Agent:
    """Return an application's runner as an agent.

    A runner is the name of an application in the agents directory, an object that can be a
    ``root_agent``, or a framework's runner with such an ``agent``. Raises AgentNotFoundError and
    AgentLoadError.
    """
    if isinstance(runner, str):
        return await directory.agent(runner)
    return _agent(runner, app)


def _agent(runner: object, app: str) -> Agent:
    # Try the framework's runner first: an adapter may know it, although it has an agent inside.
    for root in (runner, getattr(runner, "agent", None)):
        for adapter in ADAPTERS:
            agent = adapter(root, app)
            if agent is not None:
                return agent
    inner = getattr(runner, "agent", None)
    return as_agent(runner if inner is None else inner, app)
