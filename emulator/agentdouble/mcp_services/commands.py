"""The backend of a service that is a command: an MCP server on standard input and output.

Each client gets a process of its own (``stdio`` has the sessions); runtimes start and confine it."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from starlette.types import Receive, Scope, Send

from agentdouble.core.threads import import_in_thread
from agentdouble.errors import BackendError, McpServiceError
from agentdouble.mcp_hosting import BODY_LIMIT, INTERNAL_ERROR, HostedServer, failure, idle_sessions
from agentdouble.state import Record

if TYPE_CHECKING:
    from agentdouble.mcp_services.stdio import StdioSession
from agentdouble.mcp_services.started_process import Started

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_S = 86_400.0


@dataclass(frozen=True)
class CommandBackend:
    """A command that speaks MCP over its standard input and output.

    Its processes run confined in ``directory``, as those of a runtime: they read it, and write to a
    home directory of the service only. They get ``environment`` in addition to the system's. A
    request without an answer for ``timeout_s`` fails. With ``sources``, nothing outside these
    directories is shown to them, whatever the command names. Raises BackendError.
    """

    kind: ClassVar[str] = "command"

    command: tuple[str, ...]
    directory: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 120.0
    sources: tuple[Path, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "directory", Path(self.directory).absolute())
        if not self.command or not self.command[0]:
            raise _unusable("it is empty")
        for word in (*self.command, *self.environment.values()):
            if not isinstance(word, str) or "\0" in word:
                raise _unusable("its words and variables are text without NUL")
        for name in self.environment:
            if not _VARIABLE.fullmatch(name):
                raise _unusable(f"{name[:100]!r} is not a valid name of an environment variable")
        if not 0 < self.timeout_s <= _LONGEST_S:
            raise _unusable(f"its timeout_s is a number of seconds up to {_LONGEST_S:g}")

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return an application that talks to processes of the command."""
        return StdioHosted(name, self, programs)

    def to_record(self) -> Record:
        """Return the backend as JSON-ready data."""
        return {
            "command": [*self.command],
            "directory": str(self.directory),
            "environment": dict(self.environment),
            "timeout_s": self.timeout_s,
            "sources": None if self.sources is None else [str(path) for path in self.sources],
        }

    @classmethod
    def of(
        cls,
        *,
        command: Sequence[str],
        directory: str,
        sources: Sequence[str] | None = None,
        **fields: Any,
    ) -> CommandBackend:
        """Return the backend of a record."""
        roots = None if sources is None else tuple(map(Path, sources))
        return cls(tuple(command), Path(directory), sources=roots, **fields)


def _unusable(reason: str) -> BackendError:
    return BackendError(f"The command of an MCP service cannot be run: {reason}.", service="")


class Programs(Protocol):
    """Starts the processes of the services; those of a service share a home directory."""

    async def start(self, service: str, command: CommandBackend) -> Started:
        """Start a process of a service; raise McpServiceError."""

    async def forget(self, service: str) -> None:
        """Remove the files and the log of a service whose processes have ended."""


MOST_SESSIONS = 32  # processes of a service; beyond, the session that was unused longest ends


class StdioHosted:
    """Answers for a service with the processes of a program, which ``programs`` starts.

    A request that is not answered within ``timeout_s`` is an error; progress gives it more time.
    """

    def __init__(self, service: str, command: CommandBackend, programs: Programs) -> None:
        self._service = service
        self._command = command
        self._programs = programs
        self._sessions: dict[str, StdioSession] = {}
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
        await import_in_thread("agentdouble.mcp_services.stdio")
        from mcp.server.transport_security import RequestBodyLimitMiddleware  # slow: the MCP SDK

        await RequestBodyLimitMiddleware(self._answer, BODY_LIMIT)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = idle_sessions.header(scope, idle_sessions.VERSION_HEADER) or ""
        session_id = idle_sessions.header(scope, idle_sessions.SESSION_HEADER)
        session = self._sessions.get(session_id or "")
        if version >= idle_sessions.FIRST_WITHOUT_SESSIONS:
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

    async def _make_session(self) -> StdioSession | None:
        """Return a new session with a process; None if there are too many that are in use."""
        from agentdouble.mcp_services.stdio import StdioSession  # slow: the MCP SDK

        async with self._opening:
            if len(self._sessions) >= MOST_SESSIONS:
                oldest = min(
                    self._sessions.values(), key=lambda session: (session.busy, session.used_at)
                )
                if oldest.busy:
                    return None
                await oldest.end()
            started = await self._programs.start(self._service, self._command)
            if self._context is None:  # the service has ended meanwhile
                await started.end(0)
                raise McpServiceError("The service has ended.", service=self._service)
            session = StdioSession(self._service, started, self._command.timeout_s, self._forget)
            self._sessions[session.id] = session
            return session

    def _forget(self, session: StdioSession) -> None:
        self._sessions.pop(session.id, None)
