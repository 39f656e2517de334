"""The agent's side of a run: what it yields, handed over to the server's loop in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from agentdouble.agents.agent import Agent, Yielded
from agentdouble.agents.cross_loop_queue import CrossLoopQueue
from agentdouble.agents.events import Event, Message, Part, WireEvent
from agentdouble.agents.session import Session
from agentdouble.errors import AgentYieldError, RunEndedError

T = TypeVar("T")


@dataclass(frozen=True)
class Said:
    """Something that was yielded, and what was set and saved before it."""

    what: Yielded
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """Something that the agent asks of its session; the answer goes into ``answer``."""

    question: Callable[[], Awaitable[Any]]
    answer: Future[Any]


@dataclass(frozen=True)
class Ended:
    """The agent has come to its end, or to an error."""

    error: BaseException | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


Item = Union[Said, Asked, Ended]  # noqa: UP007 (evaluated, also on Python 3.10)


class Questions:
    """Puts an agent's questions between what it says, so that they are answered in order."""

    def __init__(self, out: CrossLoopQueue[Item], app: str) -> None:
        self._out = out
        self._app = app
        self._over = False

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """Have the server's loop answer a question; raise RunEndedError after the run."""
        if self._over:
            raise RunEndedError(
                f"The agent of {self._app!r} asks for its session after its run has ended.",
                app=self._app,
            )
        asked = Asked(question, Future())
        self._out.put(asked)
        answer: T = await asyncio.wrap_future(asked.answer)
        return answer

    def end(self) -> None:
        """Answer no more."""
        self._over = True


async def speak(
    agent: Agent, app: str, message: Message, session: Session, out: CrossLoopQueue[Item]
) -> None:
    """Let an agent answer a message and hand over what it yields; on the agents' loop."""
    try:
        await _speak(agent, app, message, session, out)
    except asyncio.CancelledError as error:
        out.put(Ended(error))
        raise
    except BaseException as error:  # sys.exit() too: it would end the loop
        out.put(Ended(error))
    else:
        out.put(Ended(None, session.state.take_delta(), session.take_saved()))


async def _speak(
    agent: Agent, app: str, message: Message, session: Session, out: CrossLoopQueue[Item]
) -> None:
    answers = agent.run(message, session)
    async with contextlib.aclosing(answers) as yielded:  # type: ignore[type-var]
        async for what in yielded:
            _check(what, app)
            if isinstance(what, Event):
                session.state.update_from(what.state_delta)
            out.put(Said(what, session.state.take_delta(), session.take_saved()))
            if out.full:
                await out.room()


def _check(what: object, app: str) -> None:
    if not isinstance(what, (str, Part, Event, WireEvent)):
        raise AgentYieldError(
            f"The agent of {app!r} yielded a value of type {type(what).__name__}. It may yield "
            "a str, a Part or an Event of agentdouble.agents.",
            app=app,
        )
