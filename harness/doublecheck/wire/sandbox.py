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
from agentdouble.core.code_tool import Invocation
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
_MOST_OF_A_PAGE = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A session: a user's by its name, or any by its SessionId (``s-...``), ``instance_id``.

    ``ttl_s`` is the validity of its instance, if a call creates it.
    """

    user_id: str
    session_id: str
    instance_id: str | None = None
    ttl_s: int | None = None

    @property
    def user_session_id(self) -> str:
        """The name of a user's session in requests."""
        return Invocation(self.user_id, self.session_id).user_session_id


def run(
    target: Target,
    place: Place,
    code: str,
    language: str,
    timeout_s: int | None,
    read: Callable[[httpx.Response], T],
) -> Call[T]:
    """Return the call that runs code, or a command, in a session."""
    tool, name = target.sandbox_tool(), place.user_session_id
    body = invoke_tool.RunCode(tool, name, code, language, timeout_s, place.ttl_s).body()
    if place.instance_id is not None:
        del body["UserSessionId"]
        body["SessionId"] = place.instance_id
    patience_s = (timeout_s or _LARGEST_TIMEOUT_S) + _READ_MARGIN_S
    return Call(signed(target, body, timeout_s=patience_s), read)


def require_no_shell(language: str) -> None:
    """Raise ArgumentError if a language is a shell, because a command has another kind of result."""
    if language in invoke_tool.SHELLS:
        raise ArgumentError(
            "run_code() runs code; for a command, use exec_bash(command) instead of "
            f"language={language!r}."
        )


def find_session(target: Target, user_id: str, session_id: str) -> Call[str | None]:
    """Return the call that finds the active instance of a user's session by its SessionId.

    Raises CredentialsMissingError.
    """

    def read(result: Mapping[str, Any]) -> str | None:
        listed = result.get("SessionInfos") or ()
        living = (it for it in listed if str(it.get("Status", "")).lower() in _LIVING)
        return next((str(session["SessionId"]) for session in living), None)

    name = Place(user_id, session_id).user_session_id
    filters = [{"Name": "UserSessionId", "Values": [name]}]
    return _call(target, "ListSessions", {"Filters": filters}, read)


def sessions(target: Target, token: str) -> Call[tuple[dict[str, str], str | None]]:
    """Return the call that lists sessions: names by SessionId, and the token of the next page."""

    def read(result: Mapping[str, Any]) -> tuple[dict[str, str], str | None]:
        listed = result.get("SessionInfos") or ()
        names = {str(it["SessionId"]): str(it.get("UserSessionId")) for it in listed}
        return names, result.get("NextToken") or None

    return _call(target, "ListSessions", _page(token), read)


def delete_session(target: Target, session_id: str) -> Call[None]:
    """Return the call that ends an instance; ``session_id`` is its SessionId (``s-...``)."""
    return _call(target, "DeleteSession", {"SessionId": session_id}, lambda _result: None)


def signed(
    target: Target,
    body: Mapping[str, Any],
    *,
    action: str = invoke_tool.ACTION,
    timeout_s: float | None = None,
) -> Request:
    """Return a request to the control plane, signed now. Raise CredentialsMissingError."""
    when = dt.datetime.now(dt.timezone.utc)
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


def session(target: Target, place: Place) -> Call[str]:
    """Return the call that returns the SessionId of a user's session, created if necessary."""
    body = {"UserSessionId": place.user_session_id}
    return _call(target, "CreateSession", body, _session_id)


def create(target: Target, session_id: str) -> Call[str]:
    """Return the call that takes a snapshot of a session, by its SessionId, and returns its id."""
    return _call(target, "CreateSessionSnapshot", {"SessionId": session_id}, _id)


def get(target: Target, snapshot_id: str) -> Call[SessionSnapshot]:
    """Return the call that returns a snapshot."""
    body = {"SnapshotId": snapshot_id}
    return _call(target, "GetSessionSnapshot", body, lambda it: _snapshot(it["Snapshot"]))


def snapshots(target: Target, token: str) -> Call[tuple[tuple[SessionSnapshot, ...], str | None]]:
    """Return the call that lists snapshots of the sandbox tool, and the token of the next page."""

    def read(result: Mapping[str, Any]) -> tuple[tuple[SessionSnapshot, ...], str | None]:
        listed = tuple(_snapshot(item) for item in result.get("Snapshots") or ())
        return listed, result.get("NextToken") or None

    return _call(target, "ListSessionSnapshots", _page(token), read)


def delete(target: Target, snapshot_id: str) -> Call[str]:
    """Return the call that deletes a snapshot."""
    return _call(target, "DeleteSessionSnapshot", {"SnapshotId": snapshot_id}, _id)


def resume(target: Target, snapshot_id: str, ttl_s: int | None, *, as_new: bool) -> Call[str]:
    """Return the call that resumes a snapshot, and returns the SessionId of the session."""
    body: dict[str, Any] = {"SnapshotId": snapshot_id, "CreateNewInstance": as_new}
    if ttl_s is not None:
        body["Ttl"] = ttl_s
    return _call(target, "ResumeSessionFromSnapshot", body, _session_id)


def _page(token: str) -> dict[str, Any]:
    """Return the fields that request a page of a list; the first one has no token."""
    return {"MaxResults": _MOST_OF_A_PAGE, **({"NextToken": token} if token else {})}


def _call(
    target: Target, action: str, body: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]
) -> Call[T]:
    """Return the call of an action about the sandbox tool, whose Result is read."""
    request = signed(target, {"ToolId": target.sandbox_tool(), **body}, action=action)
    return Call(request, lambda response: read(read_action(response)))


def _session_id(result: Mapping[str, Any]) -> str:
    return str(result["SessionId"])


def _id(result: Mapping[str, Any]) -> str:
    return str(result["SnapshotId"])


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
