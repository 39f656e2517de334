"""A SimpleApp as an agent of API-server mode: the message is the prompt of an invocation."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator
from typing import Any

from agentdouble.agents.agent import Agent
from agentdouble.agents.events import Message
from agentdouble.agents.session import Session
from agentdouble.apps.simple import SimpleApp
from agentdouble.errors import AgentLoadError


def simple_agent(root: object, app: str) -> Agent | None:
    """Return the agent that a SimpleApp is, None for anything else; raise AgentLoadError.

    Its entrypoint gets the message's text as ``prompt``, and ``user_id`` and ``session_id`` as
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
    """Return what an entrypoint returns as text, as JSON if it is none."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
