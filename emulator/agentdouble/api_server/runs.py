"""Runs: a message in, an agent's events out, everything that happens kept (API-07 to API-12)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from agentdouble import ledger
from agentdouble.agents.agent import Agent
from agentdouble.agents.cross_loop_queue import CrossLoopQueue
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.events import Message, Part
from agentdouble.agents.loops import AgentLoops
from agentdouble.agents.session import Session
from agentdouble.api_server import events
from agentdouble.api_server.artifacts import Artifacts
from agentdouble.api_server.backend import SessionBackend
from agentdouble.api_server.bodies import CreateSession, RunRequest
from agentdouble.api_server.content import to_wire
from agentdouble.api_server.encoding import dumps, loads
from agentdouble.api_server.records import SessionKey, Shown, StoredEvent
from agentdouble.api_server.replies import Replies
from agentdouble.api_server.sessions import Sessions
from agentdouble.api_server.turns import Asked, Ended, Item, Questions, speak
from agentdouble.application_loop import ApplicationExitError
from agentdouble.errors import (
    AgentLoadError,
    AgentNotFoundError,
    ApiError,
    RunEndedError,
    SessionNotFoundError,
)
from agentdouble.run_code import Invocation, invoked_by

Show = Callable[[Sequence[Shown]], Awaitable[None]]

_log = logging.getLogger(__name__)


class Runs:
    """Runs the agents of a directory in sessions, one run of a session at a time."""

    def __init__(
        self, directory: AgentsDirectory, sessions: Sessions, artifacts: Artifacts
    ) -> None:
        self.directory = directory
        self.sessions = sessions
        self.artifacts = artifacts
        self.loops = AgentLoops()
        self._queues: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    async def prepare(self, body: RunRequest, *, streaming: bool) -> Run:
        """Return the run that a request asks for; raise ApiError if there is none."""
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
            loaded = self.directory.loaded(app)
            if loaded is None:
                loaded = await asyncio.wrap_future(self.directory.loading(app))
            return loaded
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
    async def turn_of(self, key: SessionKey) -> AsyncIterator[None]:
        """Wait for the session's earlier runs to end (U-RUN-CONCURRENT)."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = asyncio.Lock()
        if queue.locked() and ledger.choose("U-RUN-CONCURRENT") == "interleaved":
            yield
            return
        async with queue:
            yield

    async def _create_unknown(self, key: SessionKey) -> None:
        if ledger.choose("U-RUN-UNKNOWN-SESSION") != "create":
            raise SessionNotFoundError(f"Session not found: {key.id}")
        await self.sessions.create(key.app, key.user, CreateSession(session_id=key.id))


class Run:
    """One run; ``execute()`` it once."""

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
        self._agents_error: Exception | None = None
        self._replies = Replies(
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
        """Whether an error of ``execute()`` is the agent's, or says what is wrong with the request."""
        return error is self._agents_error or isinstance(error, (ValueError, SessionNotFoundError))

    async def execute(self, show: Show) -> None:
        """Run the agent; keep each event, then show it.

        Raises what the agent raises, and SessionNotFoundError if the session is deleted
        meanwhile. Cancelled, because the client went away, it says so in the history.
        """
        async with self._runs.turn_of(self.key):
            session = await self._store.head(self.key)
            if session is None:
                raise self._gone()
            message = self._message()
            delta = self._body.state_delta or {}
            await self._keep([self._replies.to_user(message, delta)])
            await self._answer(message, {**session.state, **delta}, show)

    async def _answer(self, message: Message, state: dict[str, Any], show: Show) -> None:
        out: CrossLoopQueue[Item] = CrossLoopQueue()
        questions = Questions(out, self.key.app)
        session = self._session(state, questions)
        with invoked_by(Invocation(self.key.user, self.key.id, self.key.app)):
            turn = await self._runs.loops.submit(
                self.key.app, lambda: speak(self._agent, self.key.app, message, session, out)
            )
        over = False
        try:
            items = await out.take()
            turn.settle()
            while not await self._hear(items, show):
                items = await out.take()
            over = True
        except asyncio.CancelledError:
            await self._seal()
            raise
        finally:
            questions.end()
            if not over:
                turn.cancel()

    async def _hear(self, items: Sequence[Item], show: Show) -> bool:
        """Keep and show what the agent said, answer what it asked; return whether it has ended."""
        ready: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, Asked):
                await self._publish(ready, show)
                ready = []
                await _reply(item)
            elif isinstance(item, Ended):
                if item.error is None:
                    ready += self._replies.to_end(item)
                await self._publish(ready, show)
                if item.error is not None:
                    self._agents_error = self._understood(item.error)
                    raise self._agents_error
                return True
            else:
                ready += self._replies.to_said(item)
        await self._publish(ready, show)
        return False

    async def _publish(self, ready: Sequence[dict[str, Any]], show: Show) -> None:
        if ready:
            await show(await self._keep(ready))

    async def _keep(self, built: Sequence[dict[str, Any]]) -> list[Shown]:
        """Keep what is not partial, and return all of it ready to be shown."""
        try:
            kept, shown = _written(built)
        except TypeError as error:  # of something that the agent gave, and JSON cannot say
            self._agents_error = error
            raise
        if kept and not await self._store.append(self.key, kept):
            raise self._gone()
        return shown

    async def _seal(self) -> None:
        """Say in the history that the client went away, if there is a history still."""
        await self._store.append(self.key, [events.stored(self._replies.to_abort())])

    def _message(self) -> Message:
        """Return the user's message; raise ValueError, as the real server's run does."""
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

    def _session(self, state: dict[str, Any], questions: Questions) -> Session:
        return Session(
            app_name=self.key.app,
            user_id=self.key.user,
            id=self.key.id,
            invocation_id=self._invocation_id,
            state=loads(dumps(state)) if state else {},
            streaming=self._streaming,
            backend=SessionBackend(self.key, self._store, self._runs.artifacts, questions),
        )

    def _gone(self) -> SessionNotFoundError:
        return SessionNotFoundError(f"Session {self.key.id} not found.")

    def _understood(self, error: BaseException) -> Exception:
        if isinstance(error, Exception):
            return error
        if isinstance(error, asyncio.CancelledError):
            return RunEndedError(f"The agent of {self.key.app!r} was cancelled.", app=self.key.app)
        return ApplicationExitError(f"{type(error).__name__}: {error}")


def _written(built: Sequence[dict[str, Any]]) -> tuple[list[StoredEvent], list[Shown]]:
    """Return what of events is kept, and all of them ready to be shown."""
    kept: list[StoredEvent] = []
    shown: list[Shown] = []
    for event in built:
        if event.get("partial"):
            shown.append(Shown(dumps(event), artifacts=False))
            continue
        stored = events.stored(event)
        kept.append(stored)
        shown.append(Shown(stored.json, bool(event["actions"]["artifactDelta"])))
    return kept, shown


def _description(app: str, agent: Agent) -> dict[str, Any]:
    return {
        "name": app,
        "rootAgentName": agent.name,
        "description": agent.description,
        "language": "python",
        "isComputerUse": False,
        "agents": None,
    }


async def _reply(asked: Asked) -> None:
    """Answer an agent's question, with the error that it comes to if need be."""
    if not asked.answer.set_running_or_notify_cancel():
        return
    try:
        asked.answer.set_result(await asked.question())
    except Exception as error:
        asked.answer.set_exception(error)
