"""A session of the sandbox: its code, commands, files, browser and snapshots (sections 1, 4.4)."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import httpx

from agentdouble.core import invoke_tool
from agentdouble.core.code_tool import DEFAULT_AGENT, DEFAULT_SESSION, DEFAULT_USER, Invocation
from doublecheck.client._async.browser import AsyncBrowser
from doublecheck.client.arguments import require, require_text
from doublecheck.client.live_outputs import run_async
from doublecheck.client.pauses import pause_async
from doublecheck.errors import AnswerError, ArgumentError, EndedCopyError, RefusedError
from doublecheck.values.executions import (
    BashResult,
    CodeResult,
    Completion,
    OnOutput,
    Ran,
    SessionSnapshot,
    checked,
)
from doublecheck.wire import admin, calls, control_plane, data_plane
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.data_plane import Endpoint, Start

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform

_LIVING = (*data_plane.STARTING, "ready", "paused")
_READY_WITHIN_S = 120
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LARGEST_TIMEOUT_S = 300
_READ_MARGIN_S = 30

T = TypeVar("T")


@dataclass(frozen=True)
class AsyncSandbox:
    """A session of the sandbox, from ``Platform.sandbox()``.

    A user's session has a name: ``user_id``, ``session_id`` and the ``agent`` whose code runs in it.
    Its instance is created on first use, with the lifetime ``ttl_s``, and a new one after it has
    ended. Any session can be named by its SessionId (``s-...``), ``instance_id``, instead. Such a
    sandbox, for example a copy from ``Platform.sandbox_from()``, raises EndedCopyError once its
    session has ended.

    Every method raises RefusedError if the platform refuses, and CredentialsMissingError.
    """

    platform: AsyncPlatform = field(repr=False)
    user_id: str = DEFAULT_USER
    session_id: str = DEFAULT_SESSION
    instance_id: str | None = None
    ttl_s: int | None = None
    agent: str = DEFAULT_AGENT

    @property
    def user_session_id(self) -> str:
        """The name of a user's session in requests (SBX-12)."""
        return Invocation(self.user_id, self.session_id, self.agent).user_session_id

    async def run(
        self,
        code: str,
        language: str = "python3",
        *,
        timeout_s: int | None = None,
        on_output: OnOutput | None = None,
        check: bool = False,
    ) -> CodeResult:
        """Run code in the session and return its result (CTL-01).

        Code that raises also returns a result, with the exception in ``error``; with ``check`` it
        raises ResultError, as ``result.raise_for_error()`` does. ``on_output`` is called with each
        LiveOutput. Raises InterruptedRunError for a KeyboardInterrupt during the run.
        """
        require_text(code, "code", "run_code")
        if language in invoke_tool.SHELLS:
            raise ArgumentError(
                "run() and run_code() run code; for a command, use exec_bash(command) of a sandbox "
                f"instead of language={language!r}."
            )
        call = self._invocation(code, language, timeout_s, control_plane.read_result)
        return checked(await self._run(call, on_output), check)

    async def exec_bash(
        self, command: str, *, timeout_s: int | None = None, check: bool = False
    ) -> BashResult:
        """Run a command in the session's terminal (SBX-09).

        A command that fails also returns a result, with its ``exit_code``; with ``check`` it raises
        ResultError. Raises InterruptedRunError for a KeyboardInterrupt during the run.
        """
        require_text(command, "command", "exec_bash")
        call = self._invocation(command, "bash", timeout_s, data_plane.read_command)
        return checked(await self._run(call), check)

    def _invocation(
        self,
        code: str,
        language: str,
        timeout_s: int | None,
        read: Callable[[httpx.Response], Ran],
    ) -> Call[Ran]:
        if timeout_s is not None:
            require(timeout_s, int, "run_code", "timeout_s as a whole number of seconds")
        target, name = self.platform.target, self.user_session_id
        run = invoke_tool.RunCode(
            target.sandbox_tool(), name, code, language, timeout_s, self.ttl_s
        )
        body = run.body()
        if self.instance_id is not None:
            del body["UserSessionId"]
            body["SessionId"] = self.instance_id
        patience_s = (timeout_s or _LARGEST_TIMEOUT_S) + _READ_MARGIN_S
        return Call(control_plane.signed(target, body, timeout_s=patience_s), read)

    async def _run(self, call: Call[Ran], on_output: OnOutput | None = None) -> Ran:
        """Run code or a command. Pass the outputs of code to ``on_output``, if given."""
        outputs = None if on_output is None else self._outputs(call.request.timeout_s)
        session = self.instance_id or self.session_id
        with self._living():
            return await run_async(self.platform._connection, call, session, outputs, on_output)

    def _outputs(self, timeout_s: float | None) -> Request | None:
        """Return the request for live outputs, which a double has for users' sessions."""
        target = self.platform.target
        if not target.admin or self.instance_id is not None:
            return None
        name = {"tool_id": target.sandbox_tool(), "user_session_id": self.user_session_id}
        path = f"{admin.PREFIX}/outputs?{urlencode(name)}"
        return calls.request(target, "GET", path, timeout_s=timeout_s)

    async def complete(
        self, code: str, cursor: int | None = None, language: str = "python3"
    ) -> Completion:
        """Return the completions at a position in code, from the session's kernel.

        ``cursor`` is the number of characters before the position, by default all. The result is
        empty if the session has no such kernel or its kernel is busy. Raises NotADoubleError.
        """
        require_text(code, "code", "complete")
        if self.instance_id is not None:
            raise ArgumentError("complete() needs a session with a name, not an instance_id.")
        document = {
            "tool_id": self.platform.target.sandbox_tool(),
            "user_session_id": self.user_session_id,
            "language": language,
            "code": code,
            "cursor_pos": len(code) if cursor is None else cursor,
        }
        feature = "Completion from a session's kernel"
        request = admin.request(self.platform.target, feature, "POST", "/complete", document)
        return await self._call(Call(request, admin.read_completion))

    async def upload(self, path: str, content: bytes) -> str:
        """Upload a file to the session and return its path (SBX-10)."""
        require(content, (bytes, bytearray), "upload", "content as bytes: encode text first")
        built = httpx.Request(
            "POST",
            (await self._endpoint()).at("/v1/file/upload"),
            data={"path": path},
            files={"file": (posixpath.basename(path) or "file", content)},
        )
        headers = {"Content-Type": built.headers["Content-Type"]}
        request = Request("POST", str(built.url), headers, built.read())
        return await self._call(Call(request, data_plane.read_upload))

    async def download(self, path: str) -> bytes:
        """Download a file from the session (SBX-10)."""
        endpoint = await self._endpoint()
        url = f"{endpoint.at('/v1/file/download')}&path={quote(path, safe='')}"
        return await self._call(Call(Request("GET", url), data_plane.read_download))

    @property
    def browser(self) -> AsyncBrowser:
        """The session's browser (SBX-11). It starts with the first request."""
        return AsyncBrowser(self.platform._connection, self._endpoint)

    async def _endpoint(self) -> Endpoint:
        """Return the session's Endpoint, once it has one. A user's session is created if necessary.

        Raises AnswerError if the session does not start.
        """
        if self.instance_id is None:
            answer = await self._start("CreateSession", self._creation())
        else:
            answer = await self._start("GetSession", {"SessionId": self.instance_id})
        end_s, pause_s = time.monotonic() + _READY_WITHIN_S, _FIRST_PAUSE_S
        while isinstance(answer, Start):
            if time.monotonic() > end_s:
                message = f"{answer.session_id} was not ready within {_READY_WITHIN_S} seconds."
                raise AnswerError(message, status=httpx.codes.OK)
            await pause_async(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            answer = await self._start("GetSession", {"SessionId": answer.session_id})
        return answer

    async def _start(self, action: str, fields: Mapping[str, Any]) -> Endpoint | Start:
        body = {"ToolId": self.platform.target.sandbox_tool(), **fields}
        request = control_plane.signed(self.platform.target, body, action=action)
        return await self._call(Call(request, data_plane.read_endpoint))

    def _creation(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"UserSessionId": self.user_session_id}
        if self.ttl_s is not None:
            fields |= {"Ttl": self.ttl_s, "TtlUnit": "second"}
        return fields

    async def snapshot(self) -> SessionSnapshot:
        """Take a snapshot. ``Platform.sandbox_from(snapshot)`` makes copies of the session.

        Raises RefusedError, with the reason, if the platform cannot take it.
        """
        session = self.instance_id or await self._act("CreateSession", self._creation(), _session)
        id_ = await self._act("CreateSessionSnapshot", {"SessionId": session}, _snapshot_id)
        self.platform._created.snapshots.append(id_)
        details = await self._act("GetSessionSnapshot", {"SnapshotId": id_}, _snapshot)
        left_out = (await self.platform._left_out()).get(id_, "")
        return control_plane.read_snapshot(details, left_out)

    async def resume(
        self, snapshot: SessionSnapshot | None = None, *, ttl_s: int | None = None
    ) -> None:
        """Return the session to its state in a snapshot, by default the newest of the session.

        Later changes are lost. A session that has expired wakes if the platform took a snapshot at
        its end. ``ttl_s`` is its new lifetime. Raises ArgumentError for a snapshot of another
        session, or if there is none; ``Platform.sandbox_from(snapshot)`` makes a copy instead.
        """
        if snapshot is None:
            snapshot = await self._newest_snapshot()
        require(snapshot, SessionSnapshot, "resume", "the snapshot that snapshot() returned")
        own = self.instance_id or self.user_session_id
        saved = snapshot.session_id if self.instance_id else snapshot.user_session_id
        if saved and saved != own:
            raise ArgumentError(
                f"The snapshot {snapshot.id} is of the session {saved}, not of {own}. "
                "platform.sandbox_from(snapshot) makes a copy of that session."
            )
        await self.platform._resume(snapshot, ttl_s, as_new=False)

    async def _newest_snapshot(self) -> SessionSnapshot:
        name = "SessionId" if self.instance_id else "UserSessionId"
        own = self.instance_id or self.user_session_id
        fields = {name: own, "MaxResults": 1}
        listed = await self._act("ListSessionSnapshots", fields, _snapshots)
        if not listed:
            raise ArgumentError(
                f"There is no snapshot of the session {own}. snapshot() takes one, and a session of "
                "a tool with EnableSnapshot gets one when it expires."
            )
        return control_plane.read_snapshot(listed[0])

    async def exists(self) -> bool:
        """Whether the session has an instance. This does not create one."""
        if self.instance_id is None:
            return await self._instance(*_LIVING) is not None
        try:
            await self._act("GetSession", {"SessionId": self.instance_id}, _session)
        except EndedCopyError:
            return False
        return True

    async def destroy(self) -> bool:
        """End the session's instance. Return whether there was one."""
        instance = self.instance_id or await self._instance(*_LIVING, "failed")
        if instance is None:
            return False
        self.platform._created.forget_copy(instance)
        try:
            await self._act("DeleteSession", {"SessionId": instance}, lambda _result: None)
        except RefusedError as error:
            if self.instance_id is None or error.status != httpx.codes.NOT_FOUND:
                raise
            return False
        return True

    async def _instance(self, *statuses: str) -> str | None:
        """Return the SessionId of the user's instance with one of the statuses, or None."""
        filters = [{"Name": "UserSessionId", "Values": [self.user_session_id]}]
        listed = await self.platform._act("ListSessions", {"Filters": filters}, _sessions)
        # the first one, because copies, which come later, may have its name, too
        found = (it for it in listed if str(it.get("Status", "")).lower() in statuses)
        return next((str(session["SessionId"]) for session in found), None)

    async def _act(
        self, action: str, fields: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        with self._living():
            return await self.platform._act(action, fields, read)

    async def _call(self, call: Call[T]) -> T:
        with self._living():
            return await self.platform._connection.call(call)

    @contextmanager
    def _living(self) -> Iterator[None]:
        """Raise EndedCopyError for the refusal of a session that is named by its SessionId."""
        try:
            yield
        except RefusedError as error:
            if self.instance_id is None or not error.code.startswith("InvalidResource.NotFound"):
                raise
            raise EndedCopyError(self.instance_id, error) from None

    def __repr__(self) -> str:
        name = self.instance_id or f"{self.user_id}/{self.session_id}"
        return f"<AsyncSandbox {name} of {self.platform.url}>"


def _sessions(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(result.get("SessionInfos") or ())


def _session(result: Mapping[str, Any]) -> str:
    return str(result["SessionId"])


def _snapshot_id(result: Mapping[str, Any]) -> str:
    return str(result["SnapshotId"])


def _snapshots(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(result.get("Snapshots") or ())


def _snapshot(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(result["Snapshot"])
