"""The agent's side of a run: its events and the queries to its session, in order.

The agent runs on its application's event loop. Events and queries go through one queue to the
server's loop, so that the answer to a query includes every event that was yielded before it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from agentdouble.agents.agent import Agent, AgentOutput, Event, Message, Part, Session, WireEvent
from agentdouble.agents.framework import (
    Framework,
    FrameworkEvent,
    FrameworkHost,
    RunEvent,
    RunInput,
)
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.json_text import loads
from agentdouble.api_server.stores import SessionKey, SessionStore
from agentdouble.errors import AgentYieldError, RunEndedError, SessionNotFoundError
from agentdouble.server.cross_loop_queue import CrossLoopQueue

T = TypeVar("T")


@dataclass(frozen=True)
class Yielded:
    """A value that the agent yielded, and the state and artifacts that it changed before."""

    value: AgentOutput
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """A query of the agent to its session; the result goes into ``answer``."""

    ask: Callable[[], Awaitable[Any]]
    answer: Future[Any]

    async def reply(self) -> None:
        """Answer the query on the server's loop, with a value or with the raised error."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            self.answer.set_result(await self.ask())
        except Exception as error:
            self.answer.set_exception(error)


@dataclass(frozen=True)
class Finished:
    """The end of the agent: it has returned, or raised an error."""

    error: BaseException | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    artifact_delta: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Appended:
    """An event that a framework's runner adds to a session."""

    key: SessionKey
    event: FrameworkEvent


# A framework's runner yields RunEvents.
Item = Union[Yielded, Appended, RunEvent, Query, Finished]  # noqa: UP007 (evaluated, also on 3.10)


async def run_agent(
    agent: Agent, app: str, message: Message, session: Session, queue: CrossLoopQueue[Item]
) -> None:
    """Let an agent answer a message on this loop, and queue the values that it yields."""

    async def run() -> Finished:
        await _queue_yields(agent, app, message, session, queue)
        return Finished(None, session.state.take_delta(), session.take_saved())

    await _finishing(run(), queue)


async def run_framework(
    framework: Framework, request: RunInput, host: FrameworkHost, queue: CrossLoopQueue[Item]
) -> None:
    """Let a framework's runner answer on this loop, and queue the events that it yields."""

    async def run() -> Finished:
        async with contextlib.aclosing(framework.run(request, host)) as events:  # type: ignore[type-var]
            async for event in events:
                queue.put(event)
                if queue.full:
                    await queue.wait_for_room()
        return Finished()

    await _finishing(run(), queue)


async def _finishing(running: Coroutine[Any, Any, Finished], queue: CrossLoopQueue[Item]) -> None:
    """Queue the end of a run, or the error that it raises."""
    try:
        finished = await running
    except asyncio.CancelledError as error:
        queue.put(Finished(error), urgent=True)
        raise
    except BaseException as error:  # also sys.exit(), which would end the loop
        queue.put(Finished(error), urgent=True)
    else:
        queue.put(finished, urgent=True)


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
                await queue.wait_for_room()


def _check(value: object, app: str) -> None:
    if not isinstance(value, (str, Part, Event, WireEvent)):
        raise AgentYieldError(
            f"The agent of {app!r} yielded a value of type {type(value).__name__}. It may yield "
            "a str, a Part or an Event of agentdouble.agents.",
            app=app,
        )


class Queries:
    """Queues an agent's queries between its yielded values, so that the order is kept."""

    def __init__(self, queue: CrossLoopQueue[Item], app: str) -> None:
        self._queue = queue
        self._app = app
        self._closed = False

    async def ask(self, query: Callable[[], Awaitable[T]]) -> T:
        """Let the server's loop answer a query; raise RunEndedError after the run."""
        self.check_open()
        answer: Future[T] = Future()
        self._queue.put(Query(query, answer), urgent=True)
        return await asyncio.wrap_future(answer)

    def check_open(self) -> None:
        """Raise RunEndedError after the run."""
        if self._closed:
            raise RunEndedError(
                f"The agent of {self._app!r} used its session after its run had ended.",
                app=self._app,
            )

    def close(self) -> None:
        """Accept no more queries."""
        self._closed = True


class SessionBackend:
    """The session of one run, read and written through queries to the stores."""

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
        """Store a new version of an artifact and return its number, counted from 0."""
        saved = await self._queries.ask(lambda: self._artifacts.save(self._key, name, part.wire))
        return saved.version

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, by default the newest, or None if there is none."""
        artifact = await self._queries.ask(lambda: self._artifacts.find(self._key, name, version))
        return None if artifact is None else Part(loads(artifact.json))

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""
        return tuple(await self._queries.ask(lambda: self._artifacts.names(self._key)))
