"""An MCP service whose backend is a command: who gets which process, and when it ends.

A session of the handshake era has a process of its own, which starts with it and ends with it
(``sessions``). Requests of the stateless era share one (``requests``), which starts with the first.
If a process dies, what is in flight gets an error that says so; the next request of the stateless
era starts another, and a client of a session is answered 404, upon which it opens a new one.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.types import Receive, Scope, Send

from agentdouble.errors import McpServiceError
from agentdouble.mcp_hosting import BODY_LIMIT, INTERNAL_ERROR, failure
from agentdouble.mcp_hosting.keys import SESSION_HEADER, VERSION_HEADER, header
from agentdouble.mcp_services.stdio.programs import Program, Programs
from agentdouble.mcp_services.stdio.server import Message, Server
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.mcp_services.stdio.requests import SharedServer
    from agentdouble.mcp_services.stdio.sessions import Session

MOST_SESSIONS = 32  # processes of a service; beyond, the session that was idle longest ends
IDLE_S = 1800.0
_LOOK_S = 60.0
_SDK = (
    "agentdouble.mcp_services.stdio.exchange",
    "agentdouble.mcp_services.stdio.sessions",
)
T = TypeVar("T")


class StdioHosted:
    """Answers for a service with the processes of a program, which ``programs`` starts.

    A request that is not answered within ``timeout_s`` is an error; progress gives it more time.
    """

    def __init__(
        self, service: str, program: Program, timeout_s: float, programs: Programs
    ) -> None:
        self._service = service
        self._program = program
        self._timeout_s = timeout_s
        self._programs = programs
        self._sessions: dict[str, Session] = {}
        self._shared: SharedServer | None = None
        self._starting: asyncio.Future[SharedServer] | None = None
        self._opening = asyncio.Lock()
        self._context: contextvars.Context | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside the block; at its end, end the processes."""
        self._context = contextvars.copy_context()
        reaping = self._in_background(self._reap())
        try:
            yield
        finally:
            self._context = None
            reaping.cancel()
            await self._end_all()
            await self._programs.forget(self._service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await import_in_thread(*_SDK)
        from mcp.server.transport_security import RequestBodyLimitMiddleware

        await RequestBodyLimitMiddleware(self._answer, BODY_LIMIT)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        from agentdouble.mcp_services.stdio import exchange

        try:
            if _is_stateless(scope):
                await exchange.answer(self._get_shared, scope, receive, send)
            else:
                await self._answer_session(scope, receive, send)
        except McpServiceError as error:  # there is no process
            await failure(502, str(error), INTERNAL_ERROR)(scope, receive, send)

    async def _answer_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = header(scope, SESSION_HEADER)
        session = self._sessions.get(given or "")
        if session is not None:
            await session.answer(scope, receive, send)
            return
        if given is not None:
            await failure(404, "Session not found")(scope, receive, send)
            return
        if scope["method"] != "POST":
            await failure(400, "The request has no Mcp-Session-Id.")(scope, receive, send)
            return
        await self._open_session(scope, receive, send)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._in_background(self._make_session())
        if session is None:
            message = f"{MOST_SESSIONS} sessions of the MCP service are in use. Try again later."
            await failure(503, message, INTERNAL_ERROR)(scope, receive, send)
            return
        opened = False
        try:
            opened = await session.answer(scope, receive, send)
        finally:
            if not opened:
                await session.end()

    async def _make_session(self) -> Session | None:
        """Return a new session with a process; None if there are too many that are in use."""
        from agentdouble.mcp_services.stdio.sessions import Session

        async with self._opening:
            while len(self._sessions) >= MOST_SESSIONS:
                idle = [session for session in self._sessions.values() if session.idle]
                if not idle:
                    return None
                await min(idle, key=lambda one: one.used_at).end()
            server = await self._take_or_start()
            session = Session(self._service, server, self._timeout_s, self._forget)
            self._sessions[session.id] = session
            return session

    async def _take_or_start(self) -> Server:
        server = self._shared.release() if self._shared is not None else None
        if server is None:
            return await self._start()
        self._shared = None
        return server

    async def _get_shared(self) -> SharedServer:
        if self._shared is None or self._shared.lost:
            if self._starting is None or self._starting.done():
                self._starting = self._in_background(self._share())
            return await asyncio.shield(self._starting)
        return self._shared

    async def _share(self) -> SharedServer:
        from agentdouble.mcp_services.stdio.requests import SharedServer

        server = await self._start()
        self._shared = SharedServer(self._service, server, self._timeout_s)
        return self._shared

    async def _start(self) -> Server:
        started = await self._programs.start(self._service, self._program)
        server = Server(self._service, started, _nobody)
        if self._context is None:  # the service has ended meanwhile
            await server.end()
            raise McpServiceError("The service has ended.", service=self._service)
        return server

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin work outside of the context of the current request."""
        if self._context is None:
            work.close()
            raise McpServiceError("The service has ended.", service=self._service)
        return self._context.copy().run(asyncio.ensure_future, work)

    async def _reap(self) -> None:
        """End what has been idle for long."""
        while True:
            await asyncio.sleep(_LOOK_S)
            since = time.monotonic() - IDLE_S
            for session in [*self._sessions.values()]:
                if session.idle and session.used_at < since:
                    await session.end()
            shared = self._shared
            if shared is not None and shared.idle and shared.used_at < since:
                self._shared = None
                await shared.end()

    async def _end_all(self) -> None:
        if self._starting is not None:
            await asyncio.wait({self._starting})
        living: list[Session | SharedServer] = [*self._sessions.values()]
        if self._shared is not None:
            living.append(self._shared)
        await asyncio.gather(*(one.end() for one in living))


async def _nobody(_message: Message) -> None:
    """Receive what a process says before it is asked anything."""


def _is_stateless(scope: Scope) -> bool:
    """Return whether a request is of the stateless era; its header says so."""
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = header(scope, VERSION_HEADER)
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
