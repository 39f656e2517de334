"""AsyncPlatform: the requests that a platform answers, as methods.

``agents`` has the methods of API-server mode, ``sandbox`` those of a sandbox session.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import httpx

from agentdouble.core.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER
from doublecheck.client._async.a2a import AsyncA2aClient
from doublecheck.client._async.agents import AsyncAgents
from doublecheck.client._async.clock import AsyncPlatformClock
from doublecheck.client._async.connection import TIMEOUT_S, AsyncConnection, events
from doublecheck.client._async.faults import AsyncPlatformFaults
from doublecheck.client._async.mcp import AsyncMcpClient
from doublecheck.client._async.model import AsyncPlatformModel
from doublecheck.client._async.sandbox import AsyncSandbox
from doublecheck.client.arguments import require, require_text
from doublecheck.client.created import Created
from doublecheck.core.notebook_repr import Shown
from doublecheck.errors import RefusedError
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target
from doublecheck.values.agents import StreamEvent
from doublecheck.values.double import Journal, SandboxInfos, Unknowns, ledger_unknowns
from doublecheck.values.executions import CodeResult, OnOutput, SessionSnapshot
from doublecheck.wire import a2a, admin, application, calls, control_plane, mcp, near_misses
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

_MOST_OF_A_PAGE = 100
_WHAT_IF_S = 130.0  # the double waits 60 s for the answers, and as long for an earlier question


class AsyncPlatform(Shown, drawn_by="notebook.display.platforms.platform"):
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
        self.agents = AsyncAgents(self._connection)
        self.clock = AsyncPlatformClock(self._connection)
        self.faults = AsyncPlatformFaults(self._connection)
        self.model = AsyncPlatformModel(self._connection)
        self._on_close = on_close
        self._created = Created()

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

        ``fields`` are added to the payload (INV-01). One that looks like a misspelled argument,
        such as ``user``, is a warning.
        """
        ids = {"user_id": user_id, "session_id": session_id, "request_id": request_id}
        request = self._invocation("invoke", prompt, fields, ids, headers)
        return await self._connection.call(Call(request, application.read_value))

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
        request = self._invocation("stream", prompt, fields, ids, headers)
        async with (
            self._connection.streaming(request) as response,
            events(response, application.refuse_no_stream) as arriving,
        ):
            async for event in arriving:
                yield StreamEvent(event.data)

    def _invocation(
        self,
        method: str,
        prompt: str,
        fields: Mapping[str, Any],
        ids: Mapping[str, str | None],
        headers: Mapping[str, str] | None,
    ) -> Request:
        """Return the request of an invocation. A header that is None is not sent (INV-03)."""
        near_misses.warn(method, fields, (*ids, "headers"))
        named = {name: value for name, value in ids.items() if value is not None}
        all_headers = {
            "Content-Type": "application/json",
            **named,
            **calls.mapping_of_headers(headers),
        }
        content = calls.json_content({**fields, "prompt": prompt})
        return calls.request(self.target, "POST", "/invoke", headers=all_headers, content=content)

    async def ping(self) -> str:
        """Return the text of ``/ping`` (PRB-01)."""
        return await self._probe("ping")

    async def health(self) -> str:
        """Return the status of ``/health`` (PRB-02)."""
        return await self._probe("health")

    async def readiness(self) -> str:
        """Return the result of ``/readiness`` (PRB-03)."""
        return await self._probe("readiness")

    async def liveness(self) -> str:
        """Return the result of ``/liveness`` (PRB-04)."""
        return await self._probe("liveness")

    async def _probe(self, name: str) -> str:
        request = calls.request(self.target, "GET", f"/{name}")
        return await self._connection.call(Call(request, application.read_probe))

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
        check: bool = False,
    ) -> CodeResult:
        """Run code in the sandbox of a user's session and return its result.

        This is ``sandbox(...).run(code)``; see ``Sandbox.run()``.
        """
        sandbox = self.sandbox(user_id=user_id, session_id=session_id, ttl_s=ttl_s)
        return await sandbox.run(
            code, language, timeout_s=timeout_s, on_output=on_output, check=check
        )

    def sandbox(
        self,
        session_id: str = DEFAULT_SESSION,
        *,
        user_id: str = DEFAULT_USER,
        agent: str = DEFAULT_AGENT,
        instance_id: str | None = None,
        ttl_s: int | None = None,
    ) -> AsyncSandbox:
        """Return the sandbox of a user's session: code, commands, files, browser, snapshots.

        Its instance is created on first use, with the lifetime ``ttl_s``. ``agent`` is the name of
        an application, such as SimpleApp's, and opens the session in which its run_code runs.
        ``instance_id`` names a session by its SessionId (``s-...``) instead. This sends no request.
        """
        return AsyncSandbox(self, user_id, session_id, instance_id, ttl_s, agent)

    async def sandbox_from(
        self, snapshot: SessionSnapshot, *, ttl_s: int | None = None
    ) -> AsyncSandbox:
        """Return a new sandbox that is a copy of the session in a snapshot.

        ``ttl_s`` is its lifetime. Raises RefusedError.
        """
        require(snapshot, SessionSnapshot, "sandbox_from", "the snapshot that snapshot() returned")
        instance_id = await self._resume(snapshot, ttl_s, as_new=True)
        self._created.copies.append(instance_id)
        return AsyncSandbox(self, "", "", instance_id)

    async def snapshots(self) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of sandbox sessions, also those of sessions that have expired.

        ``sandbox(instance_id=snapshot.session_id).resume(snapshot)`` wakes such a session.
        """
        pages = await self._pages("ListSessionSnapshots", "Snapshots")
        left_out = await self._left_out()
        return tuple(
            control_plane.read_snapshot(details, left_out.get(str(details["SnapshotId"]), ""))
            for details in pages
        )

    async def _left_out(self) -> Mapping[str, str]:
        """Return what the snapshots of a double do not contain, by their ids."""
        if not self.target.admin:
            return {}
        request = admin.request(self.target, "A list of snapshots", "GET", "/snapshots")
        return await self._connection.call(Call(request, admin.read_left_out))

    async def delete_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Delete a snapshot of a sandbox session. Its copies are not affected."""
        await self._delete_snapshot(snapshot.id)

    async def _delete_snapshot(self, snapshot_id: str) -> None:
        fields = {"SnapshotId": snapshot_id}
        await self._act("DeleteSessionSnapshot", fields, lambda _result: None)

    async def _resume(self, snapshot: SessionSnapshot, ttl_s: int | None, *, as_new: bool) -> str:
        """Resume a session, or a copy of it, from a snapshot; return the SessionId."""
        fields: dict[str, Any] = {"SnapshotId": snapshot.id, "CreateNewInstance": as_new}
        if ttl_s is not None:
            fields["Ttl"] = ttl_s
        return await self._act(
            "ResumeSessionFromSnapshot", fields, lambda result: str(result["SessionId"])
        )

    async def _sandbox_names(self) -> dict[str, str]:
        """Return the UserSessionIds of the active sandbox sessions, by their SessionIds."""
        sessions = await self._pages("ListSessions", "SessionInfos")
        return {str(it["SessionId"]): str(it.get("UserSessionId")) for it in sessions}

    async def _pages(self, action: str, field: str) -> list[Mapping[str, Any]]:
        """Return the items on all pages of a list of the control plane."""
        items: list[Mapping[str, Any]] = []
        token: str | None = None
        while True:
            fields = {"MaxResults": _MOST_OF_A_PAGE, **({"NextToken": token} if token else {})}
            result = await self._act(action, fields, lambda result: result)
            items += result.get(field) or ()
            token = result.get("NextToken")
            if not token:
                return items

    async def _act(
        self, action: str, fields: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        """Call an action of the control plane about the sandbox tool and return its Result."""
        return await self._connection.call(control_plane.action(self.target, action, fields, read))

    async def _end_created(self) -> None:
        """End the copies of sessions and delete the snapshots that were created here."""
        while self._created.copies:
            await self.sandbox(instance_id=self._created.copies[-1]).destroy()
        while self._created.snapshots:
            with contextlib.suppress(RefusedError):  # it was deleted, or the double was reset
                await self._delete_snapshot(self._created.snapshots.pop())

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
        require_text(address, "address", "mcp")
        server = mcp.McpServer.at(self.target, address, api_key, headers)
        return AsyncMcpClient(self._connection, server)

    def a2a(self, path: str = a2a.PATH) -> AsyncA2aClient:
        """Return a client of the A2A application at a path of the platform (A2A-01)."""
        require_text(path, "path", "a2a")
        return AsyncA2aClient(self._connection, path)

    async def journal(self) -> Journal:
        """Return the requests that a double served, oldest first. Raise NotADoubleError."""
        return await self._journal()

    async def _journal(self, *, after: int = 0) -> Journal:
        """Return the requests after an entry of a double's journal."""
        path = f"/journal?bodies=true&after={after}"
        request = admin.request(self.target, "A journal", "GET", path)
        return await self._connection.call(Call(request, admin.read_journal))

    async def sandboxes(self) -> SandboxInfos:
        """Return a double's active sandbox sessions. Raise NotADoubleError."""
        request = admin.request(self.target, "A list of sandboxes", "GET", "/sessions")
        return await self._connection.call(Call(request, admin.read_sandboxes))

    async def unknowns(self) -> Unknowns:
        """Return a double's ledger, with the unknowns relied on. Raise NotADoubleError."""
        usage = await self._unknowns()
        return ledger_unknowns(usage.in_force, usage.settled, usage.relied_on)

    async def _unknowns(self, *, after: int = 0) -> admin.UnknownsInUse:
        """Return the answers in force, and the unknowns that later entries of the journal use."""
        path = f"/unknowns?after={after}"
        request = admin.request(self.target, "A ledger of unknowns", "GET", path)
        return await self._connection.call(Call(request, admin.read_unknowns))

    async def _choose(self, answers: Mapping[str, str]) -> None:
        """Change a double's answers, from those at its start; ``{}`` restores them."""
        chosen = dict(answers)
        request = admin.request(self.target, "A ledger of unknowns", "PUT", "/unknowns", chosen)
        await self._connection.call(Call(request, admin.read_unknowns))

    async def _alternatives(
        self, entry: int, alternatives: Sequence[Mapping[str, str]]
    ) -> Sequence[admin.RepeatedAnswer]:
        """Return a double's answers to a request of its journal, sent again under alternatives."""
        document = {"entry": entry, "alternatives": list(alternatives)}
        path = "/what-if/answers"
        request = admin.request(self.target, "What-if", "POST", path, document, _WHAT_IF_S)
        return await self._connection.call(Call(request, admin.read_alternatives))

    async def reset(self, *, wait: bool = True, keep: Sequence[str] | None = None) -> None:
        """Return a double to its initial state, except for the parts to ``keep``.

        The parts are ``sessions`` (of the sandbox), ``session_snapshots``, ``tools``, ``mcp``,
        ``runtimes``, ``agent_sessions`` (of API-server mode, with artifacts), ``tasks`` (of A2A),
        ``journal``, ``clock`` and ``faults``. By default, the parts are kept that the double
        stores in its state, which ``state`` also names; ``keep=()`` keeps nothing.

        Without ``wait`` it returns as soon as no session can be reached; some processes may
        still be ending. Raises NotADoubleError.
        """
        query = {"wait": str(wait).lower()}
        if keep is not None:
            query["keep"] = keep if isinstance(keep, str) else ",".join(keep)
        path = f"/reset?{urlencode(query, safe=',')}"
        request = admin.request(self.target, "reset()", "POST", path)
        await self._connection.call(Call(request, calls.refuse))

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncPlatform {self.target.kind} at {self.url}>"
