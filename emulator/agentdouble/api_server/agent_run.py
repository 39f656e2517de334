"""The agent's side of a run: what it yields and what it asks of its session, in order.

The agent runs on a loop of its application's. All of this goes through one queue to the server's
loop, so that each answer sees what was yielded before its query.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from agentdouble.agents.agent import Agent, AgentOutput
from agentdouble.agents.events import Event, Message, Part, WireEvent
from agentdouble.agents.session import Session
from agentdouble.api_server.artifact_service import ArtifactService
from agentdouble.api_server.stores import SessionKey, SessionStore
from agentdouble.api_server.wire import loads
from agentdouble.application_loop import CrossLoopQueue
from agentdouble.errors import AgentYieldError, RunEndedError, SessionNotFoundError

T = TypeVar("T")


@dataclass(frozen=True)
class Yielded:
    """Something that the agent yielded, and what it set and saved before."""

    value: AgentOutput
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """Something that the agent asks of its session; the answer goes into ``answer``."""

    ask: Callable[[], Awaitable[Any]]
    answer: Future[Any]

    async def reply(self) -> None:
        """Answer it, on the server's loop, with a value or with the error that was raised."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            self.answer.set_result(await self.ask())
        except Exception as error:
            self.answer.set_exception(error)


@dataclass(frozen=True)
class Finished:
    """The agent has returned, or raised an error."""

    error: BaseException | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


Item = Union[Yielded, Query, Finished]  # noqa: UP007 (evaluated, also on Python 3.10)


async def run_agent(
    agent: Agent, app: str, message: Message, session: Session, queue: CrossLoopQueue[Item]
) -> None:
    """Let an agent answer a message and queue what it yields; on the application's loop."""
    try:
        await _queue_yields(agent, app, message, session, queue)
    except asyncio.CancelledError as error:
        queue.put(Finished(error))
        raise
    except BaseException as error:  # sys.exit() too: it would end the loop
        queue.put(Finished(error))
    else:
        queue.put(Finished(None, session.state.take_delta(), session.take_saved()))


async def _queue_yields(
    agent: Agent, app: str, message: Message, session: Session, queue: CrossLoopQueue[Item]
) -> None:
    async with contextlib.aclosing(agent.run(message, session)) as yields:  # type: ignore[type-var]
        async for value in yields:
            _check(value, app)
            if isinstance(value, Event):
                session.state.update_from(value.state_delta)
            queue.put(Yielded(value, session.state.take_delta(), session.take_saved()))
            if queue.full:
                await queue.room()


def _check(value: object, app: str) -> None:
    if not isinstance(value, (str, Part, Event, WireEvent)):
        raise AgentYieldError(
            f"The agent of {app!r} yielded a value of type {type(value).__name__}. It may yield "
            "a str, a Part or an Event of agentdouble.agents.",
            app=app,
        )


class Queries:
    """Puts an agent's queries between its yields, so that they are answered in order."""

    def __init__(self, queue: CrossLoopQueue[Item], app: str) -> None:
        self._queue = queue
        self._app = app
        self._closed = False

    async def ask(self, query: Callable[[], Awaitable[T]]) -> T:
        """Have the server's loop answer a query; raise RunEndedError after the run."""
        if self._closed:
            raise RunEndedError(
                f"The agent of {self._app!r} asks for its session after its run has ended.",
                app=self._app,
            )
        answer: Future[T] = Future()
        self._queue.put(Query(query, answer))
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Accept no more queries."""
        self._closed = True


class SessionBackend:
    """The stores, as the session of one run may ask them."""

    def __init__(
        self, key: SessionKey, store: SessionStore, artifacts: ArtifactService, queries: Queries
    ) -> None:
        self._key = key
        self._store = store
        self._artifacts = artifacts
        self._queries = queries

    async def history(self) -> tuple[Event, ...]:
        """Return the session's events, oldest first."""
        stored = await self._queries.ask(lambda: self._store.read(self._key))
        if stored is None:
            raise SessionNotFoundError(f"Session {self._key.id} not found.")
        return tuple(Event.from_wire(loads(event)) for event in stored.events)

    async def save_artifact(self, name: str, part: Part) -> int:
        """Keep a new version of an artifact and return its number, from 0."""
        saved = await self._queries.ask(lambda: self._artifacts.save(self._key, name, part.wire))
        return saved.version

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest for None, or None if there is none."""
        found = await self._queries.ask(lambda: self._artifacts.find(self._key, name, version))
        return None if found is None else Part(loads(found.json))

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""
        return tuple(await self._queries.ask(lambda: self._artifacts.names(self._key)))
