"""A run: an agent answers a message, each event is stored before it is sent (API-07 to API-12).

The agent runs on its application's event loop (``agent_run.py``); this module runs on the server's.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from agentdouble.agents.agent import Agent, Message, Part, Session
from agentdouble.agents.framework import FrameworkEvent, RunEvent
from agentdouble.agents.loops import AgentLoops, LoopTask, Start
from agentdouble.api_server import agent_run, events
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.events import EventBuilder
from agentdouble.api_server.json_text import dumps, loads
from agentdouble.api_server.models import RunRequest, to_wire
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import (
    Revision,
    SessionKey,
    SessionStore,
    StoredEvent,
    StoredSession,
)
from agentdouble.core import ledger
from agentdouble.core.code_tool import Invocation, invoked_by
from agentdouble.errors import RunEndedError, SessionNotFoundError
from agentdouble.server.application_loop import ApplicationExitError
from agentdouble.server.cross_loop_queue import CrossLoopQueue

# Bytes of the JSON of events; the objects of ADK take some nine times as much.
MOST = 512 * 1024


@dataclass(frozen=True)
class Opened:
    """A session, its first events as objects, and its other events as JSON."""

    session: StoredSession
    parsed: Sequence[Any]
    unread: Sequence[bytes]


class _History:
    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[Any] = []
        self.size = 0


class Histories:
    """Histories of sessions, the least recently used first; used on the server's loop alone."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._size = 0
        self._histories: OrderedDict[SessionKey, _History] = OrderedDict()

    async def open(self, key: SessionKey, head: StoredSession | None = None) -> Opened | None:
        """Return a session, or None if there is none; ``head`` is the session without events."""
        head = head or await self._store.head(key)
        if head is None:
            return None
        # What is kept may be newer than the head: ``_parsed`` cuts it off at the head's revision.
        events = self._parsed(key, head.revision)
        if len(events) == head.revision.events:
            return Opened(head, events, ())
        session = await self._store.read(key)
        if session is None:
            return None
        # Again: the session may have been deleted and created anew since its head was read, and
        # then its revision has another history.
        events = self._parsed(key, session.revision)
        return Opened(session, events, session.events_after(len(events)))

    def add_read(self, opened: Opened, events: Sequence[Any]) -> None:
        """Keep the objects of an opened session's unread events."""
        revision, size = opened.session.revision, sum(len(event) for event in opened.unread)
        self._add(opened.session.key, revision, events, size)

    def add_stored(
        self, key: SessionKey, revision: Revision, events: Sequence[FrameworkEvent]
    ) -> None:
        """Keep the objects of events that were just stored; they led to ``revision``."""
        size = sum(len(event.json) for event in events)
        self._add(key, revision, [event.value for event in events], size)

    def clear(self) -> None:
        """Forget everything."""
        self._histories.clear()
        self._size = 0

    def _parsed(self, key: SessionKey, revision: Revision) -> list[Any]:
        history = self._histories.get(key)
        if history is None or history.number != revision.history:
            return []
        self._histories.move_to_end(key)
        return history.events[: revision.events]

    def _add(self, key: SessionKey, revision: Revision, events: Sequence[Any], size: int) -> None:
        """Keep events that end at a revision, if those before them are kept."""
        history = self._histories.get(key)
        first = revision.events - len(events)
        if first == 0 and (history is None or history.number != revision.history):
            self._forget(key)
            history = self._histories[key] = _History(revision.history)
        # Two runs may have read the same events, or the next ones have been added before: only
        # events that continue the list are kept, so it never has a gap.
        if history is None or history.number != revision.history or len(history.events) != first:
            return
        history.events += events
        history.size += size
        self._size += size
        self._histories.move_to_end(key)
        while self._size > MOST and len(self._histories) > 1:
            self._forget(next(iter(self._histories)))

    def _forget(self, key: SessionKey) -> None:
        history = self._histories.pop(key, None)
        if history is not None:
            self._size -= history.size


class SessionLocks:
    """A lock for each session that has runs: a session has at most one run at a time."""

    def __init__(self) -> None:
        # Weak: a lock lives as long as a run holds it or waits for it, so that there is always one
        # lock per session, and none for sessions without runs.
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def exclusive(self, key: SessionKey) -> AsyncIterator[None]:
        """Wait until the session's earlier runs have ended (U-RUN-CONCURRENT)."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        if lock.locked() and ledger.choose("U-RUN-CONCURRENT") == "interleaved":
            yield
            return
        async with lock:
            yield


@dataclass(frozen=True)
class RunServices:
    """The services of the server that runs use, and the loops that agents run on."""

    sessions: SessionService
    artifacts: ArtifactService
    histories: Histories
    loops: AgentLoops = field(default_factory=AgentLoops)
    locks: SessionLocks = field(default_factory=SessionLocks)


Send = Callable[[Sequence[RunEvent]], Awaitable[None]]


class FunctionRun:
    """One run; call ``execute()`` only once."""

    def __init__(
        self,
        services: RunServices,
        agent: Agent,
        key: SessionKey,
        body: RunRequest,
        *,
        streaming: bool,
    ) -> None:
        self.key = key
        self._services = services
        self._agent = agent
        self._body = body
        self._store = services.sessions.store
        self._invocation_id = body.invocation_id or f"e-{uuid.uuid4()}"
        self._streaming = streaming
        self._agent_error: Exception | None = None
        self._events = EventBuilder(
            invocation_id=self._invocation_id,
            author=agent.name,
            streaming=streaming,
            custom_metadata=body.custom_metadata,
            now=services.sessions.now,
        )

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""
        return self._services.sessions.now()

    def is_expected(self, error: Exception) -> bool:
        """Return whether an error of ``execute()`` comes from the agent or the request."""
        return error is self._agent_error or isinstance(error, (ValueError, SessionNotFoundError))

    async def execute(self, send: Send) -> None:
        """Run the agent; store each event, then send it.

        Raises the agent's error, and SessionNotFoundError if the session is deleted meanwhile. If
        it is cancelled because the client disconnected, it stores an event that says so.
        """
        async with self._services.locks.exclusive(self.key):
            # Read inside the lock: the run that held it has changed the state.
            session = await self._store.head(self.key)
            if session is None:
                raise self._not_found()
            await self._answer(session, send)

    async def _answer(self, session: StoredSession, send: Send) -> None:
        """Store the user's message and let the agent answer it."""
        message = self._message()
        delta = self._body.state_delta or {}
        await self._save([self._events.of_user(message, delta)])
        queue: CrossLoopQueue[agent_run.Item] = CrossLoopQueue()
        queries = agent_run.Queries(queue, self.key.app)
        session_copy = self._session({**session.state, **delta}, queries)
        await self._follow(
            lambda: agent_run.run_agent(self._agent, self.key.app, message, session_copy, queue),
            queue,
            queries,
            send,
        )

    async def _follow(
        self,
        start: Start,
        queue: CrossLoopQueue[agent_run.Item],
        queries: agent_run.Queries,
        send: Send,
    ) -> None:
        """Start the agent on its application's loop and handle what it puts into the queue."""
        with invoked_by(Invocation(self.key.user, self.key.id, self.key.app)):
            task = await self._services.loops.submit(self.key.app, start)
        finished = False
        try:
            items = await queue.take()
            task.stop_watching()
            while not await self._handle(items, send):
                items = await queue.take()
            finished = True
        except asyncio.CancelledError:
            await self._abort(task, queue)
            raise
        finally:
            # First the queries: an agent that is cancelled on its own loop may still ask for
            # something, and nobody here would answer.
            queries.close()
            if not finished:
                task.cancel()

    async def _abort(self, task: LoopTask, queue: CrossLoopQueue[agent_run.Item]) -> None:
        """Store that the client disconnected."""
        await self._store.append(self.key, [events.stored(self._events.of_abort())])

    async def _handle(self, items: Sequence[agent_run.Item], send: Send) -> bool:
        """Send the yielded events and answer the queries; return whether the agent has finished."""
        ready: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, agent_run.Query):
                # The answer to a query must include what the agent yielded before the query.
                await self._publish(ready, send)
                ready = []
                await item.reply()
            elif isinstance(item, agent_run.Finished):
                if item.error is None:
                    ready += self._events.of_end(item)
                await self._publish(ready, send)
                self._raise_error_of(item)
                return True
            elif isinstance(item, agent_run.Yielded):
                ready += self._events.of_yielded(item)
        await self._publish(ready, send)
        return False

    async def _publish(self, ready: Sequence[dict[str, Any]], send: Send) -> None:
        if ready:
            await send(await self._save(ready))

    async def _save(self, built: Sequence[dict[str, Any]]) -> list[RunEvent]:
        """Store the events that are not partial; return all events, ready to be sent."""
        try:
            stored, sendable = _serialized(built)
        except TypeError as error:  # the agent gave a value that is not JSON
            self._agent_error = error
            raise
        if stored and not await self._store.append(self.key, stored):
            raise self._not_found()
        return sendable

    def _message(self) -> Message:
        """Return the user's message; raise ValueError like the real server's run."""
        content, where = self._body.new_message, f"Session: {self.key.id}, User: {self.key.user}"
        if content is None and self._body.invocation_id:
            raise ValueError(f"Running an agent requires a new_message or a resumable app. {where}")
        if content is None:
            raise ValueError(
                "Running an agent requires either a new_message or an invocation_id to resume a "
                f"previous invocation. {where}"
            )
        if not content.parts:
            raise ValueError("No parts in the new_message.")
        if any(part.function_call for part in content.parts):
            raise ValueError("User message cannot contain function calls.")
        return Message(tuple(Part(to_wire(part)) for part in content.parts))

    def _session(self, state: dict[str, Any], queries: agent_run.Queries) -> Session:
        return Session(
            app_name=self.key.app,
            user_id=self.key.user,
            id=self.key.id,
            invocation_id=self._invocation_id,
            state=loads(dumps(state)) if state else {},
            streaming=self._streaming,
            backend=agent_run.SessionBackend(
                self.key, self._store, self._services.artifacts, queries
            ),
        )

    def _not_found(self) -> SessionNotFoundError:
        return SessionNotFoundError(f"Session {self.key.id} not found.")

    def _raise_error_of(self, finished: agent_run.Finished) -> None:
        error = finished.error
        if error is None:
            return
        if isinstance(error, asyncio.CancelledError):
            error = RunEndedError(f"The agent of {self.key.app!r} was cancelled.", app=self.key.app)
        elif not isinstance(error, Exception):
            error = ApplicationExitError(f"{type(error).__name__}: {error}")
        self._agent_error = error
        raise error


def _serialized(built: Sequence[dict[str, Any]]) -> tuple[list[StoredEvent], list[RunEvent]]:
    """Return the events to store, and all events ready to be sent."""
    stored: list[StoredEvent] = []
    sendable: list[RunEvent] = []
    for event in built:
        if event.get("partial"):
            sendable.append(RunEvent(dumps(event), artifacts=False))
            continue
        # An event is serialized once, when it is stored, and histories are put together from that
        # JSON. So a run costs the same for a history of any length.
        stored.append(events.stored(event))
        sendable.append(RunEvent(stored[-1].json, bool(event["actions"]["artifactDelta"])))
    return stored, sendable
