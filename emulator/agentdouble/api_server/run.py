"""A run: an agent answers a message, each event is stored before it is sent (API-07 to API-12).

The agent runs on its application's event loop (``agent_run.py``); this module runs on the server's.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agentdouble.agents.framework import RunEvent
from agentdouble.agents.loops import AgentLoops, LoopTask, Start
from agentdouble.api_server import agent_run
from agentdouble.api_server.artifacts import ArtifactService
from agentdouble.api_server.histories import Histories
from agentdouble.api_server.models import RunRequest
from agentdouble.api_server.sessions import SessionService
from agentdouble.api_server.stores import SessionKey, StoredSession
from agentdouble.core import ledger
from agentdouble.core.code_tool import Invocation, invoked_by
from agentdouble.core.keyed_locks import KeyedLocks
from agentdouble.errors import RunEndedError, SessionNotFoundError
from agentdouble.server.application_loop import ApplicationExitError
from agentdouble.server.cross_loop_queue import CrossLoopQueue


@asynccontextmanager
async def _turn(locks: KeyedLocks, key: SessionKey) -> AsyncIterator[None]:
    """Wait until the session's earlier runs have ended (U-RUN-CONCURRENT)."""
    lock = locks.of(key)
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
    locks: KeyedLocks = field(default_factory=KeyedLocks)


Send = Callable[[Sequence[RunEvent]], Awaitable[None]]


class Run(ABC):
    """One run; call ``execute()`` only once."""

    _collected = False

    def __init__(
        self, services: RunServices, key: SessionKey, body: RunRequest, *, streaming: bool
    ) -> None:
        self.key = key
        self._services = services
        self._body = body
        self._store = services.sessions.store
        self._streaming = streaming
        self._agent_error: Exception | None = None

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""
        return self._services.sessions.now()

    def is_expected(self, error: Exception) -> bool:
        """Return whether an error of ``execute()`` comes from the agent or the request."""
        return error is self._agent_error or isinstance(error, (ValueError, SessionNotFoundError))

    async def execute(self, send: Send, *, collected: bool = False) -> None:
        """Run the agent; store each event, then send it.

        If the events are ``collected``, the client gets all of them at the end.
        Raises the agent's error, and SessionNotFoundError if the session is deleted meanwhile. If
        it is cancelled because the client disconnected, it stores an event that says so.
        """
        self._collected = collected
        async with _turn(self._services.locks, self.key):
            # Read inside the lock: the run that held it has changed the state.
            session = await self._store.head(self.key)
            if session is None:
                raise self._not_found()
            await self._answer(session, send)

    def _queue(self, linger_s: float = 0.0) -> CrossLoopQueue[agent_run.Item]:
        # Waking the server's loop costs a twentieth of a run, and a client that gets all events at
        # the end needs none of them earlier.
        return CrossLoopQueue(linger_s=linger_s, patient=self._collected)

    @abstractmethod
    async def _answer(self, session: StoredSession, send: Send) -> None:
        """Let the agent answer the message."""

    @abstractmethod
    async def _abort(self, task: LoopTask, queue: CrossLoopQueue[agent_run.Item]) -> None:
        """Store that the client disconnected."""

    @abstractmethod
    async def _handle(self, items: Sequence[agent_run.Item], send: Send) -> bool:
        """Store and send events, and answer queries; return whether the agent has finished."""

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
