"""The sandbox through InvokeTool: run code, read what it came to (sections 2.7, 2.8, 4.4)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble import invoke_tool
from agentdouble.code_tool import DEFAULT_AGENT, Invocation
from agentdouble.errors import EnvelopeError, PlatformError
from doublecheck.errors import AnswerError, ArgumentError, RefusedError
from doublecheck.target.target import Target
from doublecheck.values.sandbox import CodeResult, Output
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

_OUTPUT_FIELDS = tuple(field.name for field in dataclasses.fields(Output))
_LARGEST_TIMEOUT_S = 300
_READ_MARGIN_S = 30


def run_code(
    target: Target,
    code: str,
    language: str,
    *,
    user_id: str,
    session_id: str,
    timeout_s: int | None,
    ttl_s: int | None,
    when: dt.datetime,
) -> Call[CodeResult]:
    """Return the call that runs code in a session; ``when`` is the time of signing.

    Raises CredentialsMissingError, and ArgumentError for a language of commands.
    """
    if language in invoke_tool.SHELLS:
        raise ArgumentError(
            f"run_code() runs code and reads what it came to; for a command, language={language!r}, "
            "there is exec_bash(command)."
        )
    request = run(
        target,
        code,
        language,
        user_id=user_id,
        session_id=session_id,
        timeout_s=timeout_s,
        ttl_s=ttl_s,
        when=when,
    )
    return Call(request, read_result)


def run(
    target: Target,
    code: str,
    language: str,
    *,
    user_id: str,
    session_id: str,
    timeout_s: int | None,
    ttl_s: int | None,
    when: dt.datetime,
) -> Request:
    """Return the request that runs code, or a command, in a session."""
    operation = invoke_tool.RunCode(
        tool_id=target.sandbox_tool(),
        user_session_id=Invocation(user_id, session_id, DEFAULT_AGENT).user_session_id,
        code=code,
        language=language,
        timeout_s=timeout_s,
        ttl_s=ttl_s,
    )
    patience_s = (timeout_s or _LARGEST_TIMEOUT_S) + _READ_MARGIN_S
    return control_plane(target, operation.body(), when, timeout_s=patience_s)


def control_plane(
    target: Target, body: Mapping[str, Any], when: dt.datetime, *, timeout_s: float | None = None
) -> Request:
    """Return a signed InvokeTool request; raise CredentialsMissingError."""
    signed = invoke_tool.build(body, target.address(), when)
    return Request(signed.method, signed.url, signed.headers, signed.body, timeout_s)


def read_result(response: httpx.Response) -> CodeResult:
    """Return what code came to; raise RefusedError for an error envelope, else AnswerError."""
    envelope, inner = read_envelope(response)
    try:
        return _result(inner, envelope.session_id)
    except (KeyError, TypeError) as error:
        raise AnswerError(
            f"Result.Result is not the JSON of section 2.7: {error!r} in {json.dumps(inner)}",
            status=response.status_code,
            body=response.text,
        ) from None


def read_envelope(response: httpx.Response) -> tuple[invoke_tool.Envelope, dict[str, Any]]:
    """Return the envelope of 2.8 and the JSON in it; raise RefusedError, else AnswerError."""
    try:
        envelope = invoke_tool.read(response.status_code, response.content)
        return envelope, envelope.inner()
    except PlatformError as error:
        raise RefusedError(
            str(error), status=error.status, body=response.text, code=error.code
        ) from None
    except EnvelopeError as error:
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
    """Read an output; fields that are absent or that nobody knows do no harm (CTL-02 minds)."""
    given = {name: output[name] for name in _OUTPUT_FIELDS if output.get(name) is not None}
    if "traceback" in given:
        given["traceback"] = tuple(given["traceback"])
    return Output(**given)
