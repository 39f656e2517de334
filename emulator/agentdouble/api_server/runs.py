"""Runs: an agent answers a message, and each event is stored before it is sent (API-07 to API-12).

The agent runs on its application's event loop (``agent_run.py``); this module runs on the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from agentdouble import ledger
from agentdouble.agents.agent import Agent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.events import Message, Part
from agentdouble.agents.loops import AgentLoops
from agentdouble.agents.session import Session
from agentdouble.api_server import events
from agentdouble.api_server.agent_run import (
    Finished,
    Item,
    Queries,
    Query,
    SessionBackend,
    run_agent,
)
from agentdouble.api_server.artifact_service import ArtifactService
from agentdouble.api_server.bodies import CreateSession, RunRequest
from agentdouble.api_server.event_builder import EventBuilder
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey, StoredEvent
from agentdouble.api_server.wire import dumps, loads, to_wire
from agentdouble.application_loop import ApplicationExitError, CrossLoopQueue
from agentdouble.code_tool import Invocation, invoked_by
from agentdouble.errors import (
    AgentLoadError,
    AgentNotFoundError,
    ApiError,
    RunEndedError,
    SessionNotFoundError,
)


class RunEvent(NamedTuple):
    """An event for the client; ``artifacts`` says whether it has any."""

    json: bytes
    artifacts: bool


Send = Callable[[Sequence[RunEvent]], Awaitable[None]]

_log = logging.getLogger(__name__)


class Runs:
    """Runs agents of a directory in sessions; a session has at most one run at a time."""

    def __init__(
        self, directory: AgentsDirectory, sessions: SessionService, artifacts: ArtifactService
    ) -> None:
        self.directory = directory
        self.sessions = sessions
        self.artifacts = artifacts
        self.loops = AgentLoops()
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    async def prepare(self, body: RunRequest, *, streaming: bool) -> Run:
        """Return the run for a request; raise ApiError if the request cannot be run."""
        if not body.app_name:
            raise ApiError(400, "app_name is required when ADK_DEFAULT_APP_NAME is not set")
        agent = await self.agent(body.app_name)
        key = SessionKey(body.app_name, body.user_id, body.session_id.strip())
        if await self.sessions.store.head(key) is None:
            await self._create_unknown(key)
        return Run(self, agent, key, body, streaming=streaming)

    async def agent(self, app: str) -> Agent:
        """Return an application's agent; raise ApiError if it has none."""
        if app.startswith("__"):
            raise ApiError(
                403,
                "Access to internal special agents is disabled in API server mode and on a "
                "development server not known to be bound to a loopback address.",
            )
        try:
            return await self.directory.agent(app)
        except AgentNotFoundError as error:
            ledger.choose("U-RUN-UNKNOWN-APP")
            raise ApiError(404, str(error)) from None
        except AgentLoadError as error:
            _log.error("%s", error, exc_info=error.__cause__)
            raise ApiError(500, str(error)) from None

    async def described(self) -> list[dict[str, Any]]:
        """Describe every application that can be imported."""
        found = []
        for app in self.directory.names():
            with contextlib.suppress(ApiError):
                found.append(_description(app, await self.agent(app)))
        return found

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

    async def _create_unknown(self, key: SessionKey) -> None:
        if ledger.choose("U-RUN-UNKNOWN-SESSION") != "create":
            raise SessionNotFoundError(f"Session not found: {key.id}")
        await self.sessions.create(key.app, key.user, CreateSession(session_id=key.id))


class Run:
    """One run; call ``execute()`` only once."""

    def __init__(
        self, runs: Runs, agent: Agent, key: SessionKey, body: RunRequest, *, streaming: bool
    ) -> None:
        self.key = key
        self._runs = runs
        self._agent = agent
        self._body = body
        self._store = runs.sessions.store
        self._invocation_id = body.invocation_id or f"e-{uuid.uuid4()}"
        self._streaming = streaming
        self._agent_error: Exception | None = None
        self._events = EventBuilder(
            invocation_id=self._invocation_id,
            author=agent.name,
            streaming=streaming,
            custom_metadata=body.custom_metadata,
            now=runs.sessions.now,
        )

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""
        return self._runs.sessions.now()

    def is_expected(self, error: Exception) -> bool:
        """Return whether an error of ``execute()`` comes from the agent or the request."""
        return error is self._agent_error or isinstance(error, (ValueError, SessionNotFoundError))

    async def execute(self, send: Send) -> None:
        """Run the agent; store each event, then send it.

        Raises the agent's error, and SessionNotFoundError if the session is deleted meanwhile. If
        it is cancelled because the client disconnected, it stores an event that says so.
        """
        async with self._runs.exclusive(self.key):
            session = await self._store.head(self.key)
            if session is None:
                raise self._not_found()
            message = self._message()
            delta = self._body.state_delta or {}
            await self._save([self._events.of_user(message, delta)])
            await self._run_agent(message, {**session.state, **delta}, send)

    async def _run_agent(self, message: Message, state: dict[str, Any], send: Send) -> None:
        queue: CrossLoopQueue[Item] = CrossLoopQueue()
        queries = Queries(queue, self.key.app)
        session = self._session(state, queries)
        with invoked_by(Invocation(self.key.user, self.key.id, self.key.app)):
            turn = await self._runs.loops.submit(
                self.key.app, lambda: run_agent(self._agent, self.key.app, message, session, queue)
            )
        finished = False
        try:
            items = await queue.take()
            turn.stop_watching()
            while not await self._handle(items, send):
                items = await queue.take()
            finished = True
        except asyncio.CancelledError:
            await self._store.append(self.key, [events.stored(self._events.of_abort())])
            raise
        finally:
            queries.close()
            if not finished:
                turn.cancel()

    async def _handle(self, items: Sequence[Item], send: Send) -> bool:
        """Send the yielded events and answer the queries; return whether the agent has finished."""
        ready: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, Query):
                await self._publish(ready, send)
                ready = []
                await item.reply()
            elif isinstance(item, Finished):
                if item.error is None:
                    ready += self._events.of_end(item)
                await self._publish(ready, send)
                self._raise_error_of(item)
                return True
            else:
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

    def _session(self, state: dict[str, Any], queries: Queries) -> Session:
        return Session(
            app_name=self.key.app,
            user_id=self.key.user,
            id=self.key.id,
            invocation_id=self._invocation_id,
            state=loads(dumps(state)) if state else {},
            streaming=self._streaming,
            backend=SessionBackend(self.key, self._store, self._runs.artifacts, queries),
        )

    def _not_found(self) -> SessionNotFoundError:
        return SessionNotFoundError(f"Session {self.key.id} not found.")

    def _raise_error_of(self, finished: Finished) -> None:
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


def _description(app: str, agent: Agent) -> dict[str, Any]:
    return {
        "name": app,
        "rootAgentName": agent.name,
        "description": agent.description,
        "language": "python",
        "isComputerUse": False,
        "agents": None,
    }
