"""AsyncPlatform: what Platform does, for async code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from agentdouble.run_code import DEFAULT_SESSION, DEFAULT_USER
from doublecheck import live
from doublecheck.client import live_outputs as listening
from doublecheck.client import transport as sending
from doublecheck.client.a2a import AsyncA2aClient
from doublecheck.client.arguments import checked_class
from doublecheck.client.browser import AsyncBrowser
from doublecheck.client.clock import AsyncPlatformClock
from doublecheck.client.faults import AsyncPlatformFaults
from doublecheck.client.mcp import AsyncMcpClient
from doublecheck.client.platform import TIMEOUT_S
from doublecheck.ledger import Unknowns
from doublecheck.live import Completion, OnOutput, Ran
from doublecheck.results import (
    AgentEvent,
    AgentSession,
    BashResult,
    CodeResult,
    StreamEvent,
)
from doublecheck.series import AgentEvents, AgentSessions, Journal, Sessions
from doublecheck.target.surfaces import Surface
from doublecheck.target.target import Target
from doublecheck.wire import (
    a2a,
    admin,
    api_server,
    application,
    calls,
    data_plane,
    events,
    instances,
    mcp,
    sandbox,
)
from doublecheck.wire import output_feed as feed
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.request_log import Exchanges

if TYPE_CHECKING:
    from doublecheck.reports.report import Report

T = TypeVar("T")


@checked_class
class AsyncPlatform:
    """Platform for async code: the same methods, to be awaited; use it in an async with.

    Without ``keep_connections`` each request has a connection of its own, nothing is left open
    between two, and it may be used in several event loops, one after the other.
    """

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float = TIMEOUT_S,
        keep_connections: bool = True,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.target = target
        self.clock = AsyncPlatformClock(self)
        self.faults = AsyncPlatformFaults(self)
        self.exchanges = Exchanges()
        self._options = sending.options(target, timeout_s)
        if not keep_connections:
            self._options["limits"] = sending.NONE_KEPT
        self._http = httpx.AsyncClient(**self._options)
        self._on_close = on_close

    def before_each(self, hook: Callable[[httpx.Request], Awaitable[None]]) -> None:
        """Have a hook called before each request; what it raises is raised there."""
        self._http.event_hooks["request"].append(hook)

    @property
    def url(self) -> str:
        """Where the application answers."""
        return self.target.url

    async def invoke(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        """Invoke the application and return its value; ``fields`` go into the payload (INV-01)."""
        request = application.invocation(
            self.target,
            prompt,
            fields,
            user_id=user_id,
            session_id=session_id,
            request_id=request_id,
            headers=headers,
        )
        return await self._call(Call(request, application.read_value))

    async def stream(
        self,
        prompt: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> AsyncGenerator[StreamEvent]:
        """Invoke a streaming application and yield its events as they arrive (INV-05).

        The invocation begins with the first event that is asked for. To leave early, close
        the iterator: ``async with contextlib.aclosing(platform.stream(...)) as events``.
        """
        request = application.invocation(
            self.target,
            prompt,
            fields,
            user_id=user_id,
            session_id=session_id,
            request_id=request_id,
            headers=headers,
        )
        async with self.streaming(request) as response:
            if not response.is_success or not application.streams(response):
                await response.aread()
                application.refuse_no_stream(response)
            async with events.arriving(response) as arriving:
                async for event in arriving:
                    yield StreamEvent(event.data)

    async def ping(self) -> str:
        """Return the text of ``/ping`` (PRB-01)."""
        return await self._call(application.probe(self.target, "ping"))

    async def health(self) -> str:
        """Return the status of ``/health`` (PRB-02)."""
        return await self._call(application.probe(self.target, "health"))

    async def readiness(self) -> str:
        """Return the result of ``/readiness`` (PRB-03)."""
        return await self._call(application.probe(self.target, "readiness"))

    async def liveness(self) -> str:
        """Return the result of ``/liveness`` (PRB-04)."""
        return await self._call(application.probe(self.target, "liveness"))

    async def run_code(
        self,
        code: str,
        language: str = "python3",
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeResult:
        """Run code in the sandbox of a user's session; see ``Platform.run_code()``."""
        call = sandbox.run_code(
            self.target,
            code,
            language,
            user_id=user_id,
            session_id=session_id,
            timeout_s=timeout_s,
            ttl_s=ttl_s,
            when=sending.wall(),
        )
        return await self._run(call, user_id, session_id, on_output)

    async def _run(
        self, call: Call[Ran], user_id: str, session_id: str, on_output: OnOutput | None
    ) -> Ran:
        """Run something in a session and hand over what it says, if that is wanted."""
        if on_output is None:
            return await self._call(call)
        timeout_s = call.request.timeout_s
        outputs = feed.outputs(
            self.target, user_id=user_id, session_id=session_id, timeout_s=timeout_s
        )
        sending.refuse_closed(self._http, self.url)
        if outputs is None:
            return live.handed_over(await self._call(call), on_output)
        ears = listening.Ears(outputs, self._options)
        with sending.interruptible():
            return await listening.run(self._http, self.exchanges, call, ears, on_output)

    async def complete(
        self,
        code: str,
        cursor: int | None = None,
        language: str = "python3",
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
    ) -> Completion:
        """Return what could stand at a place in code; see ``Platform.complete()``."""
        place = len(code) if cursor is None else cursor
        return await self._call(
            feed.complete(
                self.target, code, place, language, user_id=user_id, session_id=session_id
            )
        )

    async def exec_bash(
        self,
        command: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        on_output: OnOutput | None = None,
    ) -> BashResult:
        """Run a command in the terminal of a user's session; see ``Platform.exec_bash()``."""
        call = data_plane.exec_bash(
            self.target,
            command,
            user_id=user_id,
            session_id=session_id,
            timeout_s=timeout_s,
            ttl_s=ttl_s,
            when=sending.wall(),
        )
        return await self._run(call, user_id, session_id, on_output)

    async def upload(
        self,
        path: str,
        content: bytes,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        ttl_s: int | None = None,
    ) -> str:
        """Put a file into a user's session and return where it is (SBX-10)."""
        endpoint = await self._endpoint(user_id, session_id, ttl_s)
        return await self._call(data_plane.upload(endpoint, path, content))

    async def download(
        self,
        path: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        ttl_s: int | None = None,
    ) -> bytes:
        """Fetch a file of a user's session (SBX-10)."""
        endpoint = await self._endpoint(user_id, session_id, ttl_s)
        return await self._call(data_plane.download(endpoint, path))

    async def browser(
        self,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        ttl_s: int | None = None,
    ) -> AsyncBrowser:
        """Return the browser of a user's session; see ``Platform.browser()``."""
        return AsyncBrowser(self, await self._endpoint(user_id, session_id, ttl_s))

    def mcp(
        self,
        address: str = mcp.PATH,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncMcpClient:
        """Return a client of the MCP server at a path, or at a URL; see ``Platform.mcp()``."""
        return AsyncMcpClient(self, mcp.McpServer.at(self.target, address, api_key, headers))

    def a2a(self, path: str = a2a.PATH) -> AsyncA2aClient:
        """Return a client of the A2A application at a path of the platform (A2A-01)."""
        return AsyncA2aClient(self, path)

    async def destroy_session(
        self, *, user_id: str = DEFAULT_USER, session_id: str = DEFAULT_SESSION
    ) -> bool:
        """End the living instance of a user's session; see ``Platform.destroy_session()``."""
        when = sending.wall()
        found = await self._call(instances.find(self.target, user_id, session_id, when))
        if found is None:
            return False
        await self._call(instances.destroy(self.target, found, sending.wall()))
        return True

    async def _endpoint(
        self, user_id: str, session_id: str, ttl_s: int | None
    ) -> data_plane.Endpoint:
        return await self._call(
            data_plane.endpoint(
                self.target,
                user_id=user_id,
                session_id=session_id,
                ttl_s=ttl_s,
                when=sending.wall(),
            )
        )

    async def list_apps(self) -> tuple[str, ...]:
        """Return the applications of the agents directory (API-01)."""
        return await self._call(api_server.apps(self.target))

    async def create_session(
        self,
        app: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> AgentSession:
        """Create a session of an application, with a generated id unless it is given (API-02)."""
        return await self._call(api_server.create(self.target, app, user_id, session_id, state))

    async def get_session(
        self, app: str, session_id: str, *, user_id: str = DEFAULT_USER
    ) -> AgentSession:
        """Return a session with its history (API-05)."""
        return await self._call(api_server.get(self.target, app, user_id, session_id))

    async def list_sessions(self, app: str, *, user_id: str = DEFAULT_USER) -> AgentSessions:
        """Return a user's sessions of an application, without their histories (API-04)."""
        return await self._call(api_server.listed(self.target, app, user_id))

    async def delete_session(self, session: AgentSession) -> None:
        """Delete a session (API-06)."""
        await self._call(api_server.delete(self.target, session))

    async def list_artifacts(self, session: AgentSession) -> tuple[str, ...]:
        """Return the names of a session's artifacts (API-13)."""
        return await self._call(api_server.artifacts(self.target, session))

    async def download_artifact(
        self, session: AgentSession, name: str, *, version: int | None = None
    ) -> bytes:
        """Fetch an artifact of a session; see ``Platform.download_artifact()``."""
        return await self._call(api_server.artifact(self.target, session, name, version))

    async def run(self, session: AgentSession, message: str, **fields: Any) -> AgentEvents:
        """Run a session's agent for one turn and return its events (API-07).

        ``fields`` are further ones of the request, ``stateDelta`` say.
        """
        return await self._call(api_server.run(self.target, session, message, fields))

    async def run_sse(
        self, session: AgentSession, message: str, *, streaming: bool = False, **fields: Any
    ) -> AsyncGenerator[AgentEvent]:
        """Run a session's agent and yield its events as they arrive (API-08).

        With ``streaming`` its text comes in increments first. A failure is an event with
        ``error``. The run begins with the first event that is asked for.

        To leave early, close the iterator, as of ``stream()``.
        """
        fields = {"streaming": streaming, **fields}
        request = api_server.run_sse(self.target, session, message, fields)
        async with self.streaming(request) as response:
            if not response.is_success or not application.streams(response):
                await response.aread()
                application.refuse_no_stream(response)
            async with events.arriving(response) as arriving:
                async for event in arriving:
                    yield api_server.read_event(event.data)

    async def journal(self) -> Journal:
        """Return the requests that a double served, oldest first; raise NotADoubleError."""
        return await self._call(admin.journal(self.target))

    async def sessions(self) -> Sessions:
        """Return a double's living session instances; raise NotADoubleError."""
        return await self._call(admin.sessions(self.target))

    async def unknowns(self) -> Unknowns:
        """Return a double's ledger: what its answers rested on; raise NotADoubleError."""
        return await self._call(admin.ledger(self.target))

    async def check(
        self,
        *,
        only: str | None = None,
        strict_should: bool = False,
        allow_writes: bool = False,
    ) -> Report:
        """Put the platform through the contract checks; see ``doublecheck.check``.

        What else runs in the loop goes on meanwhile. Cancelling it interrupts the checks.
        """
        from doublecheck.api.check import check_awaited

        return await check_awaited(
            self, only=only, strict_should=strict_should, allow_writes=allow_writes
        )

    async def reset(self, *, wait: bool = True) -> None:
        """Destroy a double's sessions, empty its journal, set its clock back.

        Without ``wait`` it returns when no session can be reached, though processes of some
        may still be ending. Raises NotADoubleError.
        """
        await self._call(admin.reset(self.target, wait))

    async def request(
        self,
        method: str,
        path: str,
        *,
        surface: Surface | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout_s: float | None = None,
    ) -> httpx.Response:
        """Send any request and return the answer as it came.

        It goes to the surface that the specification puts its path in, unless ``surface`` is
        another: the API server's ``/health``, say.
        """
        return await self.send(
            calls.request(
                self.target,
                method,
                path,
                surface=surface,
                headers=headers,
                content=content,
                timeout_s=timeout_s,
            )
        )

    async def send(self, request: Request) -> httpx.Response:
        """Send a request that a client built and return the answer as it came."""
        sending.refuse_closed(self._http, self.url)
        with (
            sending.translated(request.url),
            sending.interruptible(),
            self.exchanges.recording(request) as recording,
        ):
            return recording.answered(await self._http.request(**sending.arguments(request)))

    async def save_test(self, path: str | Path) -> Path:
        """Write a pytest test that makes the last calls again; see ``Platform.save_test()``."""
        from doublecheck.saved_tests import module
        from doublecheck.wire.redaction import without_secrets

        return module.save(without_secrets(self.exchanges, self.target), Path(path))

    async def aclose(self) -> None:
        """Close every connection, and stop the double if ``connect_async()`` started it."""
        await self._http.aclose()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    @asynccontextmanager
    async def streaming(self, request: Request) -> AsyncIterator[httpx.Response]:
        """Send a request that a client built; the context has the answer, yet to be read."""
        sending.refuse_closed(self._http, self.url)
        with (
            sending.translated(request.url),
            sending.interruptible(),
            self.exchanges.recording(request) as recording,
        ):
            async with self._http.stream(**sending.arguments(request)) as response:
                yield recording.streamed(response)

    async def _call(self, call: Call[T]) -> T:
        return call.read(await self.send(call.request))

    async def __aenter__(self) -> AsyncPlatform:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncPlatform {self.target.kind} at {self.url}>"
