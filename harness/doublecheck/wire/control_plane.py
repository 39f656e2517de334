"""The format of the control plane: signed actions, and their results (sections 2.7, 2.8, 4.4)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from agentdouble.core import invoke_tool
from agentdouble.errors import EnvelopeError, PlatformError
from doublecheck.errors import AnswerError, RefusedError
from doublecheck.target.target import Target
from doublecheck.values.executions import CodeResult, Output, SessionSnapshot
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

_OUTPUT_FIELDS = tuple(field.name for field in dataclasses.fields(Output))
T = TypeVar("T")


def action(
    target: Target,
    name: str,
    fields: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], T],
) -> Call[T]:
    """Return the call of an action of the sandbox tool, whose Result is read."""
    request = signed(target, {"ToolId": target.sandbox_tool(), **fields}, action=name)
    return Call(request, lambda response: read(read_action(response)))


def signed(
    target: Target,
    body: Mapping[str, Any],
    *,
    action: str = invoke_tool.ACTION,
    timeout_s: float | None = None,
) -> Request:
    """Return a request to the control plane, signed now.

    Raises CredentialsMissingError, and ArgumentError for a body that JSON cannot carry.
    """
    when = dt.datetime.now(dt.timezone.utc)
    try:
        built = invoke_tool.build(body, target.address(), when, action=action)
    except (TypeError, ValueError, RecursionError):
        calls.json_content(body)  # raises the error that says what to send instead
        raise
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


def read_envelope(response: httpx.Response) -> tuple[invoke_tool.ActionEnvelope, dict[str, Any]]:
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


def read_snapshot(details: Mapping[str, Any], left_out: str = "") -> SessionSnapshot:
    """Read a session snapshot. Only its id is required: other fields are not documented."""
    return SessionSnapshot(
        id=str(details["SnapshotId"]),
        status=str(details.get("Status") or ""),
        session_id=str(details.get("SessionId") or ""),
        user_session_id=str(details.get("UserSessionId") or ""),
        created_at=str(details.get("CreatedAt") or ""),
        reason=str(details.get("Reason") or ""),
        left_out=left_out,
    )
