"""An MCP service whose backend is a command: a process for each session of a client.

The process starts and ends with its session. If it dies, requests in flight get an error that says
so, and the next request of the session is answered 404, upon which a client opens a new one. The
protocol version without sessions is refused; clients that know both then open a session.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from agentdouble.errors import McpServiceError
from agentdouble.mcp_hosting import BODY_LIMIT, INTERNAL_ERROR, failure
from agentdouble.mcp_hosting.keys import (
    FIRST_WITHOUT_SESSIONS,
    SESSION_HEADER,
    VERSION_HEADER,
    header,
)
from agentdouble.mcp_services.stdio.programs import Program, Programs
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.mcp_services.stdio.sessions import Session

MOST_SESSIONS = 32  # processes of a service; beyond, the session that was unused longest ends


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
        self._opening = asyncio.Lock()
        self._context: contextvars.Context | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside the block; at its end, end the processes."""
        self._context = contextvars.copy_context()
        try:
            yield
        finally:
            self._context = None
            async with self._opening:
                await asyncio.gather(*(session.end() for session in self._sessions.values()))
            await self._programs.forget(self._service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await import_in_thread("agentdouble.mcp_services.stdio.sessions")
        from mcp.server.transport_security import RequestBodyLimitMiddleware

        await RequestBodyLimitMiddleware(self._answer, BODY_LIMIT)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = header(scope, VERSION_HEADER) or ""
        session_id = header(scope, SESSION_HEADER)
        session = self._sessions.get(session_id or "")
        if version >= FIRST_WITHOUT_SESSIONS:
            message = f"Unsupported protocol version: {version}. Open a session with initialize."
            await failure(400, message)(scope, receive, send)
        elif session is not None:
            await session.answer(scope, receive, send)
        elif session_id is not None:
            await failure(404, "Session not found")(scope, receive, send)
        elif scope["method"] != "POST":
            await failure(400, "The request has no Mcp-Session-Id.")(scope, receive, send)
        else:
            await self._open_session(scope, receive, send)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._context is None:
            raise McpServiceError("The service has ended.", service=self._service)
        # a session must not run in the context of its first request, or end with it
        making = self._context.copy().run(asyncio.ensure_future, self._make_session())
        try:
            session = await asyncio.shield(making)
        except McpServiceError as error:  # there is no process
            await failure(502, str(error), INTERNAL_ERROR)(scope, receive, send)
            return
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
            if len(self._sessions) >= MOST_SESSIONS:
                oldest = min(self._sessions.values(), key=lambda one: (one.busy, one.used_at))
                if oldest.busy:
                    return None
                await oldest.end()
            started = await self._programs.start(self._service, self._program)
            if self._context is None:  # the service has ended meanwhile
                await started.end(0)
                raise McpServiceError("The service has ended.", service=self._service)
            session = Session(self._service, started, self._timeout_s, self._forget)
            self._sessions[session.id] = session
            return session

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
