"""AsyncPlatform: the requests that a platform answers, as methods.

The module is thin: ``wire`` builds the requests and reads the answers.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from agentdouble.core.code_tool import DEFAULT_SESSION, DEFAULT_USER
from doublecheck.client._async.connection import TIMEOUT_S, AsyncConnection, events
from doublecheck.client._async.controls import (
    AsyncPlatformClock,
    AsyncPlatformFaults,
    AsyncPlatformModel,
)
from doublecheck.client._async.protocols import AsyncA2aClient, AsyncBrowser, AsyncMcpClient
from doublecheck.client._async.sandbox import AsyncPlatformSandbox
from doublecheck.client.live_outputs import run_async
from doublecheck.errors import RefusedError
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target
from doublecheck.values.agents import (
    AgentEvent,
    AgentEvents,
    AgentSession,
    AgentSessions,
    StreamEvent,
)
from doublecheck.values.double import Journal, Sessions, Unknowns
from doublecheck.values.executions import (
    BashResult,
    CodeResult,
    Completion,
    OnOutput,
    Ran,
    SessionSnapshot,
    checked,
)
from doublecheck.wire import (
    a2a,
    admin,
    api_server,
    application,
    calls,
    data_plane,
    event_stream,
    mcp,
    sandbox,
)
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.sandbox import Place

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class AsyncPlatform:
    """A platform, double or live. Use it in ``async with``, or call ``aclose()``.

    ``timeout_s`` is the timeout for the application; run_code waits as long as its code may run. It
    begins again with each piece of an answer; ``longest_answer_s`` is a limit for all of them.
    ``exchanges`` holds the last requests with their answers. Every method raises UnreachableError,
    NoAnswerError, RefusedError if the platform refuses, and AnswerError for an answer in another
    format. Without ``keep_connections`` each request uses a new connection, and no connection stays
    open between two requests.
    """

    def __init__(
        self,
        target: Target,
        *,
        timeout_s: float = TIMEOUT_S,
        longest_answer_s: float | None = None,
        keep_connections: bool = True,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.target = target
        self._connection = AsyncConnection(
            target,
            timeout_s=timeout_s,
            longest_answer_s=longest_answer_s,
            keep_connections=keep_connections,
        )
        self.exchanges = self._connection.exchanges
        self.clock = AsyncPlatformClock(self._connection)
        self.faults = AsyncPlatformFaults(self._connection)
        self.model = AsyncPlatformModel(self._connection)
        self._on_close = on_close
        self._copies: list[str] = []  # the SessionIds of copies that were created here
        self._session_snapshots: list[str] = []

    @property
    def url(self) -> str:
        """The URL of the application."""
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
        """Invoke the application and return its value.

        ``fields`` are added to the payload (INV-01). One that looks like a misspelled argument, such
        as ``user``, is a warning.
        """
        ids = {"user_id": user_id, "session_id": session_id, "request_id": request_id}
        request = application.invocation("invoke", self.target, prompt, fields, ids, headers)
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

        A failure is an event, too; ``event.raise_for_error()`` raises it (INV-06). The invocation
        begins when the first event is read. To stop early, close the iterator:
        ``async with contextlib.aclosing(platform.stream(...)) as events``.
        """
        ids = {"user_id": user_id, "session_id": session_id, "request_id": request_id}
        request = application.invocation("stream", self.target, prompt, fields, ids, headers)
        async with (
            self._connection.streaming(request) as response,
            events(response, application.refuse_no_stream) as arriving,
        ):
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
        instance_id: str | None = None,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        on_output: OnOutput | None = None,
        check: bool = False,
    ) -> CodeResult:
        """Run code in the sandbox of a user's session and return its result.

        Code that raises also returns a result, with the exception in ``error``; with ``check`` it
        raises ResultError, as ``result.raise_for_error()`` does. ``instance_id`` names the session
        by its SessionId (``s-...``) instead. ``ttl_s`` is the validity of the session's instance,
        if this call creates it. ``on_output`` is called with each LiveOutput. Raises
        CredentialsMissingError, and InterruptedRunError for a KeyboardInterrupt during the run.
        """
        sandbox.require_no_shell(language)
        place = Place(user_id, session_id, instance_id, ttl_s)
        call = sandbox.run(self.target, place, code, language, timeout_s, sandbox.read_result)
        return checked(await self._run(call, place, on_output), check)

    async def _run(self, call: Call[Ran], place: Place, on_output: OnOutput | None = None) -> Ran:
        """Run code or a command. Pass the outputs of code to ``on_output``, if given."""
        outputs = None
        if on_output is not None and place.instance_id is None:  # only users' sessions have them
            outputs = event_stream.outputs(self.target, place, call.request.timeout_s)
        return await run_async(self._connection, call, place.session_id, outputs, on_output)

    async def complete(
        self,
        code: str,
        cursor: int | None = None,
        language: str = "python3",
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
    ) -> Completion:
        """Return the completions at a position in code, from the session's kernel.

        ``cursor`` is the number of characters before the position, by default all. The result is
        empty if the session has no such kernel or its kernel is busy. Raises NotADoubleError.
        """
        place = Place(user_id, session_id)
        position = len(code) if cursor is None else cursor
        return await self._call(event_stream.complete(self.target, place, code, position, language))

    async def exec_bash(
        self,
        command: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
        timeout_s: int | None = None,
        ttl_s: int | None = None,
        check: bool = False,
    ) -> BashResult:
        """Run a command in the terminal of a user's session (SBX-09).

        A command that fails also returns a result, with its ``exit_code``; with ``check`` it raises
        ResultError. Raises CredentialsMissingError, and InterruptedRunError for a KeyboardInterrupt
        during the run.
        """
        place = Place(user_id, session_id, instance_id, ttl_s)
        read = data_plane.read_command
        call = sandbox.run(self.target, place, command, "bash", timeout_s, read)
        return checked(await self._run(call, place), check)

    async def upload(
        self,
        path: str,
        content: bytes,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
        ttl_s: int | None = None,
    ) -> str:
        """Upload a file to a user's session and return its path (SBX-10)."""
        endpoint = await self._endpoint(Place(user_id, session_id, instance_id, ttl_s))
        return await self._call(data_plane.upload(endpoint, path, content))

    async def download(
        self,
        path: str,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
        ttl_s: int | None = None,
    ) -> bytes:
        """Download a file of a user's session (SBX-10)."""
        endpoint = await self._endpoint(Place(user_id, session_id, instance_id, ttl_s))
        return await self._call(data_plane.download(endpoint, path))

    async def browser(
        self,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
        ttl_s: int | None = None,
    ) -> AsyncBrowser:
        """Return the browser of a user's session (SBX-11). It starts with the first request.

        Raises CredentialsMissingError.
        """
        endpoint = await self._endpoint(Place(user_id, session_id, instance_id, ttl_s))
        return AsyncBrowser(self._connection, endpoint)

    def mcp(
        self,
        address: str = mcp.PATH,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncMcpClient:
        """Return a client of the MCP server at a path of the platform, or at a URL (MCP-01).

        For a path, the target's API key is sent, unless ``api_key`` is another key.
        """
        server = mcp.McpServer.at(self.target, address, api_key, headers)
        return AsyncMcpClient(self._connection, server)

    def a2a(self, path: str = a2a.PATH) -> AsyncA2aClient:
        """Return a client of the A2A application at a path of the platform (A2A-01)."""
        return AsyncA2aClient(self._connection, path)

    async def destroy_session(
        self,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
    ) -> bool:
        """End the sandbox instance of a user's session. Return whether there was one.

        Raises CredentialsMissingError.
        """
        if instance_id is None:
            instance = await self._call(sandbox.find_session(self.target, user_id, session_id))
            if instance is not None:
                await self._call(sandbox.delete_session(self.target, instance))
            return instance is not None
        if instance_id in self._copies:
            self._copies.remove(instance_id)
        try:
            await self._call(sandbox.delete_session(self.target, instance_id))
        except RefusedError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            return False
        return True

    async def _sandbox_sessions(self) -> dict[str, str]:
        """Return the names of the active sandbox sessions, by their SessionIds."""
        sessions: dict[str, str] = {}
        token: str | None = ""
        while token is not None:
            page, token = await self._call(sandbox.sessions(self.target, token))
            sessions |= page
        return sessions

    async def sandbox(
        self,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str | None = None,
        from_snapshot: SessionSnapshot | None = None,
        ttl_s: int | None = None,
    ) -> AsyncPlatformSandbox:
        """Return a sandbox session as an object, by default a new one.

        With ``from_snapshot`` it is a copy of the session in the snapshot, with the lifetime
        ``ttl_s``. Otherwise its instance is created on first use. Raises RefusedError.
        """
        if from_snapshot is None:
            return AsyncPlatformSandbox(self, user_id, session_id or uuid.uuid4().hex)
        call = sandbox.resume(self.target, from_snapshot.id, ttl_s, as_new=True)
        instance = await self._call(call)
        self._copies.append(instance)
        return AsyncPlatformSandbox(self, "", "", instance)

    async def snapshot_session(
        self,
        *,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
        instance_id: str | None = None,
    ) -> SessionSnapshot:
        """Take a snapshot of a user's sandbox session and return it.

        Raises RefusedError, with the reason, if the platform cannot take it.
        """
        session = instance_id
        if session is None:
            session = await self._call(sandbox.session(self.target, Place(user_id, session_id)))
        snapshot_id = await self._call(sandbox.create(self.target, session))
        self._session_snapshots.append(snapshot_id)
        return await self._call(sandbox.get(self.target, snapshot_id))

    async def session_snapshots(self) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of sandbox sessions."""
        snapshots: tuple[SessionSnapshot, ...] = ()
        token: str | None = ""
        while token is not None:
            page, token = await self._call(sandbox.snapshots(self.target, token))
            snapshots += page
        return snapshots

    async def resume_session(self, snapshot: SessionSnapshot, *, ttl_s: int | None = None) -> None:
        """Return a sandbox session to its state in a snapshot. Its later changes are lost.

        ``platform.sandbox(from_snapshot=...)`` makes a copy instead.
        """
        await self._call(sandbox.resume(self.target, snapshot.id, ttl_s, as_new=False))

    async def delete_session_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Delete a snapshot of a sandbox session. Its copies are not affected."""
        await self._call(sandbox.delete(self.target, snapshot.id))

    async def _end_copies(self) -> None:
        """End the copies of sessions and delete the snapshots that were created here."""
        while self._copies:
            await self.destroy_session(instance_id=self._copies[-1])
        while self._session_snapshots:
            snapshot_id = self._session_snapshots.pop()
            with contextlib.suppress(RefusedError):  # it was deleted, or the double was reset
                await self._call(sandbox.delete(self.target, snapshot_id))

    async def _endpoint(self, place: Place) -> data_plane.Endpoint:
        return await self._call(data_plane.endpoint(self.target, place))

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
        """Create a session of an application; the id is generated unless given (API-02)."""
        return await self._call(api_server.create(self.target, app, user_id, session_id, state))

    async def get_session(
        self, app: str, session_id: str, *, user_id: str = DEFAULT_USER
    ) -> AgentSession:
        """Return a session with its history (API-05)."""
        return await self._call(api_server.get(self.target, app, user_id, session_id))

    async def list_sessions(self, app: str, *, user_id: str = DEFAULT_USER) -> AgentSessions:
        """Return a user's sessions of an application, without their histories (API-04)."""
        return await self._call(api_server.list_sessions(self.target, app, user_id))

    async def delete_session(self, session: AgentSession) -> None:
        """Delete a session (API-06)."""
        await self._call(api_server.delete(self.target, session))

    async def list_artifacts(self, session: AgentSession) -> tuple[str, ...]:
        """Return the names of a session's artifacts (API-13)."""
        return await self._call(api_server.artifacts(self.target, session))

    async def download_artifact(
        self, session: AgentSession, name: str, *, version: int | None = None
    ) -> bytes:
        """Download an artifact of a session, by default its newest version.

        A text is encoded as UTF-8. The specification only describes the list of artifacts
        (U-ARTIFACTS). This uses the route of ADK's API server; a platform without it raises
        RefusedError.
        """
        return await self._call(api_server.artifact(self.target, session, name, version))

    async def run(
        self, session: AgentSession, message: str, *, check: bool = False, **fields: Any
    ) -> AgentEvents:
        """Run a session's agent for one turn and return its events (API-07).

        ``fields`` are further fields of the request, for example ``stateDelta``. With ``check`` an
        event that reports a failure raises ResultError.
        """
        events = await self._call(api_server.run(self.target, session, message, fields))
        return checked(events, check)

    async def run_sse(
        self,
        session: AgentSession,
        message: str,
        *,
        streaming: bool = False,
        check: bool = False,
        **fields: Any,
    ) -> AsyncGenerator[AgentEvent]:
        """Run a session's agent and yield its events as they arrive (API-08).

        With ``streaming`` the text arrives in increments first. A failure is an event with
        ``error``; with ``check`` it raises ResultError. The run begins when the first event is
        read.

        To stop early, close the iterator, as for ``stream()``.
        """
        fields = {"streaming": streaming, **fields}
        request = api_server.run_sse(self.target, session, message, fields)
        async with (
            self._connection.streaming(request) as response,
            events(response, application.refuse_no_stream) as arriving,
        ):
            async for event in arriving:
                yield checked(api_server.read_event(event.data), check)

    async def journal(self) -> Journal:
        """Return the requests that a double served, oldest first. Raise NotADoubleError."""
        return await self._call(admin.journal(self.target))

    async def sessions(self) -> Sessions:
        """Return a double's active session instances. Raise NotADoubleError."""
        return await self._call(admin.sessions(self.target))

    async def unknowns(self) -> Unknowns:
        """Return a double's ledger, with the unknowns relied on. Raise NotADoubleError."""
        return await self._call(admin.ledger(self.target))

    async def reset(self, *, wait: bool = True, keep: Sequence[str] | None = None) -> None:
        """Return a double to its initial state, except for the parts to ``keep``.

        The parts are ``sessions`` (of the sandbox), ``session_snapshots``, ``tools``, ``mcp``,
        ``runtimes``, ``agent_sessions`` (of API-server mode, with artifacts), ``tasks`` (of A2A),
        ``journal``, ``clock`` and ``faults``. By default, the parts are kept that the double
        stores in its state, which ``state`` also names; ``keep=()`` keeps nothing.

        Without ``wait`` it returns as soon as no session can be reached; some processes may
        still be ending. Raises NotADoubleError.
        """
        await self._call(admin.reset(self.target, wait, keep))

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
        """Send any request and return the raw response.

        The surface is that of the path in the specification, unless ``surface`` names another, for
        example the API server's for ``/health``.
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
        """Send a request that a client built and return the raw response."""
        return await self._connection.send(request)

    def streaming(self, request: Request) -> AbstractAsyncContextManager[httpx.Response]:
        """Send a request that a client built and yield the response before its body is read."""
        return self._connection.streaming(request)

    async def aclose(self) -> None:
        """Close every connection, and stop the double if ``connect_async()`` started it."""
        await self._connection.http.aclose()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    async def _call(self, call: Call[T]) -> T:
        return await self._connection.call(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncPlatform {self.target.kind} at {self.url}>"
