"""The Agent class: a name and a function that answers messages in a session."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union

from agentdouble.agents.events import Event, Message, Part, WireEvent
from agentdouble.agents.framework import Framework
from agentdouble.agents.session import Session
from agentdouble.errors import AgentLoadError

AgentOutput = Union[str, Part, Event, WireEvent]  # noqa: UP007 (evaluated, also on Python 3.10)


class Run(Protocol):
    """An async generator function that yields the texts, parts or events of one turn."""

    def __call__(self, message: Message, session: Session, /) -> AsyncIterator[AgentOutput]:
        """Answer a message."""


@dataclass(frozen=True)
class Agent:
    """An agent; ``name`` is the author of its events."""

    name: str
    run: Run
    description: str = ""
    native: Any = None  # the framework's own object, where there is one
    # Of a framework with a runner of its own: makes the framework's side of the application, from
    # that of its code before it was imported again, or None. Without one, ``run`` answers.
    open: Callable[[Framework | None], Framework] | None = None


Adapter = Callable[[object, str], "Agent | None"]


def as_agent(root: object, app: str, adapters: Sequence[Adapter] = ()) -> Agent:
    """Return an application's ``root_agent`` as an Agent; raise AgentLoadError.

    It is an async generator function, or an object that one of the adapters converts.
    """
    for adapter in adapters:
        agent = adapter(root, app)
        if agent is not None:
            return agent
    if isinstance(root, Agent):
        return root
    _check(root, app)
    return Agent(app, root, inspect.getdoc(root) or "")  # type: ignore[arg-type]


def _check(root: object, app: str) -> None:
    if not inspect.isasyncgenfunction(root):
        kind = getattr(root, "__qualname__", type(root).__qualname__)
        raise AgentLoadError(
            f"The root_agent of {app!r} is {kind}, and no agent. It is an async generator "
            "function (message, session), a SimpleApp, or an agent of Google's ADK.",
            app=app,
        )
    try:
        inspect.signature(root).bind(object(), object())
    except TypeError as error:
        raise AgentLoadError(
            f"The root_agent of {app!r} does not take (message, session): {error}.", app=app
        ) from None
