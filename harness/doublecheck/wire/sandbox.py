"""The sandbox through the control plane: run code, find and end sessions (2.7, 2.8, 4.4)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.core import invoke_tool
from agentdouble.core.code_tool import DEFAULT_AGENT, Invocation
from agentdouble.errors import EnvelopeError, PlatformError
from doublecheck.errors import AnswerError, ArgumentError, RefusedError
from doublecheck.target.target import Target
from doublecheck.values.executions import CodeResult, Output, SessionSnapshot
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

_OUTPUT_FIELDS = tuple(field.name for field in dataclasses.fields(Output))
_LIVING = ("creating", "starting", "ready", "paused")
_LARGEST_TIMEOUT_S = 300
_READ_MARGIN_S = 30


def run(
    target: Target,
    code: str,
    language: str,
    *,
    user_id: str,
    session_id: str,
    instance_id: str | None,
    timeout_s: int | None,
    ttl_s: int | None,
    when: dt.datetime,
) -> Request:
    """Return the request that runs code, or a command, in a session.

    With ``instance_id`` the session is named by its SessionId instead of its UserSessionId.
    """
    operation = invoke_tool.RunCode(
        tool_id=target.sandbox_tool(),
        user_session_id=Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id,
        code=code,
        language=language,
        timeout_s=timeout_s,
        ttl_s=ttl_s,
    )
    patience_s = (timeout_s or _LARGEST_TIMEOUT_S) + _READ_MARGIN_S
    body = operation.body()
    if instance_id is not None:
        del body["UserSessionId"]
        body["SessionId"] = instance_id
    return signed(target, body, when, timeout_s=patience_s)


def require_no_shell(language: str) -> None:
    """Raise ArgumentError if a language is a shell, because a command has another kind of result."""
    if language in invoke_tool.SHELLS:
        raise ArgumentError(
            "run_code() runs code; for a command, use exec_bash(command) instead of "
            f"language={language!r}."
        )


def find_session(
    target: Target, user_id: str, session_id: str, when: dt.datetime
) -> Call[str | None]:
    """Return the call that finds the active instance of a user's session by its SessionId.

    Raises CredentialsMissingError.
    """
    name = Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id
    filters = [{"Name": "UserSessionId", "Values": [name]}]
    body = {"ToolId": target.sandbox_tool(), "Filters": filters}
    return Call(signed(target, body, when, action="ListSessions"), _read_found)


def sessions(
    target: Target, token: str, when: dt.datetime
) -> Call[tuple[dict[str, str], str | None]]:
    """Return the call that lists sessions: names by SessionId, and the token of the next page."""

    def read(response: httpx.Response) -> tuple[dict[str, str], str | None]:
        result = read_action(response)
        listed = result.get("SessionInfos") or ()
        names = {str(it["SessionId"]): str(it.get("UserSessionId")) for it in listed}
        return names, result.get("NextToken") or None

    body: dict[str, Any] = {"ToolId": target.sandbox_tool(), "MaxResults": _PAGE}
    if token:
        body["NextToken"] = token
    return Call(signed(target, body, when, action="ListSessions"), read)


def delete_session(target: Target, session_id: str, when: dt.datetime) -> Call[None]:
    """Return the call that ends an instance; ``session_id`` is its SessionId (``s-...``)."""
    body = {"ToolId": target.sandbox_tool(), "SessionId": session_id}
    return Call(signed(target, body, when, action="DeleteSession"), _read_deleted)


def signed(
    target: Target,
    body: Mapping[str, Any],
    when: dt.datetime,
    *,
    action: str = invoke_tool.ACTION,
    timeout_s: float | None = None,
) -> Request:
    """Return a signed request to the control plane. Raise CredentialsMissingError."""
    built = invoke_tool.build(body, target.address(), when, action=action)
    return Request(built.method, built.url, built.headers, built.body, timeout_s)


def read_result(response: httpx.Response) -> CodeResult:
    """Return the result of code. Raise RefusedError for an error envelope, else AnswerError."""
    envelope, inner = read_envelope(response)
    try:
        return _result(inner, envelope.session_id)
    except (KeyError, TypeError) as error:
        raise calls.wrong_answer(
            response,
            f"Result.Result is not the JSON of section 2.7: {error!r} in {json.dumps(inner)}",
        ) from None


def read_envelope(response: httpx.Response) -> tuple[invoke_tool.Envelope, dict[str, Any]]:
    """Return the envelope of 2.8 and the JSON in it. Raise RefusedError, else AnswerError."""
    with _translated(response):
        envelope = invoke_tool.read(response.status_code, response.content)
        return envelope, envelope.inner()


def read_action(response: httpx.Response) -> Mapping[str, Any]:
    """Return the Result of an action. Raise RefusedError, else AnswerError."""
    with _translated(response):
        return invoke_tool.read_result(response.status_code, response.content)[1]


def _read_found(response: httpx.Response) -> str | None:
    listed = read_action(response).get("SessionInfos") or ()
    living = (it for it in listed if str(it.get("Status", "")).lower() in _LIVING)
    return next((str(session["SessionId"]) for session in living), None)


def _read_deleted(response: httpx.Response) -> None:
    read_action(response)


@contextmanager
def _translated(response: httpx.Response) -> Iterator[None]:
    """Translate errors of the double's own client into RefusedError and AnswerError."""
    try:
        yield
    except PlatformError as error:
        raise RefusedError(
            str(error), status=error.status, body=response.text, code=error.code
        ) from None
    except EnvelopeError as error:
        if response.is_client_error:  # refused without the envelope of 2.8
            calls.refuse(response)
        raise AnswerError(str(error), status=error.status, body=response.text) from None


def _result(inner: Mapping[str, Any], session_id: str) -> CodeResult:
    data = inner["data"]
    return CodeResult(
        success=inner["success"],
        status=data["status"],
        message=inner["message"],
        outputs=tuple(_output(output) for output in data["outputs"]),
        execution_count=data["execution_count"],
        session_id=session_id,
        code=data["code"],
    )


def _output(output: Mapping[str, Any]) -> Output:
    """Read an output. Missing and unknown fields are accepted here, but not by CTL-02."""
    fields = {name: output[name] for name in _OUTPUT_FIELDS if output.get(name) is not None}
    if "traceback" in fields:
        lines = fields["traceback"]
        fields["traceback"] = tuple(lines.splitlines() if isinstance(lines, str) else lines)
    return Output(**fields)


T = TypeVar("T")

_PAGE = 100


@dataclass(frozen=True)
class Page:
    """A page of the snapshots of a tool. ``next_token`` is "" on the last page."""

    snapshots: tuple[SessionSnapshot, ...]
    next_token: str


def session(target: Target, user_id: str, session_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that returns the SessionId of a user's session, created if necessary."""
    name = Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id
    return _call(target, "CreateSession", {"UserSessionId": name}, when, _session_id)


def create(target: Target, session_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that takes a snapshot of a session, by its SessionId, and returns its id."""
    body = {"SessionId": session_id}
    return _call(target, "CreateSessionSnapshot", body, when, _id)


def get(target: Target, snapshot_id: str, when: dt.datetime) -> Call[SessionSnapshot]:
    """Return the call that returns a snapshot."""
    body = {"SnapshotId": snapshot_id}
    return _call(target, "GetSessionSnapshot", body, when, lambda it: _snapshot(it["Snapshot"]))


def page(target: Target, token: str, when: dt.datetime) -> Call[Page]:
    """Return the call that lists the snapshots of the sandbox tool from a token on."""
    body: dict[str, Any] = {"MaxResults": _PAGE}
    if token:
        body["NextToken"] = token
    return _call(target, "ListSessionSnapshots", body, when, _page)


def delete(target: Target, snapshot_id: str, when: dt.datetime) -> Call[str]:
    """Return the call that deletes a snapshot."""
    return _call(target, "DeleteSessionSnapshot", {"SnapshotId": snapshot_id}, when, _id)


def resume(
    target: Target, snapshot_id: str, *, as_new: bool, ttl_s: int | None, when: dt.datetime
) -> Call[str]:
    """Return the call that resumes a snapshot, and returns the SessionId of the session."""
    body: dict[str, Any] = {"SnapshotId": snapshot_id, "CreateNewInstance": as_new}
    if ttl_s is not None:
        body["Ttl"] = ttl_s
    return _call(target, "ResumeSessionFromSnapshot", body, when, _session_id)


def _call(
    target: Target,
    action: str,
    body: Mapping[str, Any],
    when: dt.datetime,
    read: Callable[[Mapping[str, Any]], T],
) -> Call[T]:
    def reader(response: httpx.Response) -> T:
        return read(read_action(response))

    full_body = {"ToolId": target.sandbox_tool(), **body}
    return Call(signed(target, full_body, when, action=action), reader)


def _session_id(result: Mapping[str, Any]) -> str:
    return str(result["SessionId"])


def _id(result: Mapping[str, Any]) -> str:
    return str(result["SnapshotId"])


def _page(result: Mapping[str, Any]) -> Page:
    snapshots = tuple(_snapshot(item) for item in result.get("Snapshots") or ())
    return Page(snapshots, str(result.get("NextToken") or ""))


def _snapshot(details: Mapping[str, Any]) -> SessionSnapshot:
    """Read a snapshot. Only its id is required, because other fields are not documented."""
    return SessionSnapshot(
        id=str(details["SnapshotId"]),
        status=str(details.get("Status") or ""),
        session_id=str(details.get("SessionId") or ""),
        user_session_id=str(details.get("UserSessionId") or ""),
        created_at=str(details.get("CreatedAt") or ""),
        reason=str(details.get("Reason") or ""),
    )
