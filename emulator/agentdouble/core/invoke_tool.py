"""InvokeTool on the wire: functions that build the request and read the envelope.

See sections 2.7, 2.8 and 4.4. ``run_code`` and the harness share this module, so it uses no HTTP
client: ``build`` returns the request as a value, and ``read`` takes a status and a body.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.core.signing import Credentials, sign
from agentdouble.errors import EnvelopeError, PlatformError

ACTION = "InvokeTool"
VERSION = "2025-10-30"
SERVICE = "agentkit"
DEFAULT_REGION = "cn-beijing"
RUN_CODE = "RunCode"
EXEC_BASH = "ExecBash"
RUN_HEADER = "x-agentdouble-run"  # names an execution in live outputs
SHELLS = ("bash", "shell")  # the languages that ExecBash runs


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request, ready to be sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class ToolAddress:
    """The address of a control plane and the caller's credentials; ``url`` has no path."""

    url: str
    credentials: Credentials
    region: str = DEFAULT_REGION
    service: str = SERVICE


@dataclass(frozen=True)
class RunCode:
    """One execution of code in a session; ``timeout_s`` and ``ttl_s`` are in seconds.

    If the language is ``bash`` or ``shell``, the code is a command and the operation is ExecBash.
    """

    tool_id: str
    user_session_id: str
    code: str
    language: str = "python3"
    timeout_s: int | None = None
    ttl_s: int | None = None

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the request (U-INVOKETOOL-WIRE)."""
        payload: dict[str, Any] = {"code": self.code, "kernel_name": self.language}
        if self.language in SHELLS:
            payload = {"command": self.code}
        if self.timeout_s is not None:
            payload["timeout"] = self.timeout_s
        body: dict[str, Any] = {
            "ToolId": self.tool_id,
            "UserSessionId": self.user_session_id,
            "OperationType": EXEC_BASH if self.language in SHELLS else RUN_CODE,
            "OperationPayload": json.dumps(payload),
        }
        if self.ttl_s is not None:
            body["Ttl"] = self.ttl_s
        return body


@dataclass(frozen=True)
class ActionEnvelope:
    """The envelope of section 2.8; ``result`` is the string that holds the JSON of 2.7."""

    request_id: str
    tool_id: str
    user_session_id: str
    session_id: str
    result: str

    def inner(self) -> dict[str, Any]:
        """Return the JSON of 2.7; raise EnvelopeError if ``result`` does not hold it."""
        try:
            inner = json.loads(self.result)
        except ValueError as error:
            raise EnvelopeError(f"Result.Result is not JSON: {error}", status=200) from None
        if not isinstance(inner, dict):
            raise EnvelopeError("Result.Result is not a JSON object.", status=200)
        return inner


def build(
    body: Mapping[str, Any], address: ToolAddress, when: dt.datetime, *, action: str = ACTION
) -> HttpRequest:
    """Return a signed control-plane request; ``when`` is the time of signing, in UTC."""
    url = f"{address.url}/?Action={action}&Version={VERSION}"
    content = json.dumps(body).encode()
    headers = sign(
        "POST",
        url,
        content,
        credentials=address.credentials,
        region=address.region,
        service=address.service,
        when=when,
    )
    return HttpRequest("POST", url, headers, content)


def read(status: int, body: bytes) -> ActionEnvelope:
    """Read an answer to InvokeTool.

    Raises PlatformError for an error envelope and EnvelopeError for anything else.
    """
    request_id, result = read_result(status, body)
    if not isinstance(result.get("Result"), str):
        raise EnvelopeError(f"The answer has no Result.Result (HTTP {status}).", status=status)
    return ActionEnvelope(
        request_id=request_id,
        tool_id=str(result.get("ToolId", "")),
        user_session_id=str(result.get("UserSessionId", "")),
        session_id=str(result.get("SessionId", "")),
        result=result["Result"],
    )


def read_result(status: int, body: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return the request id and the Result of an answer to any action; raise as ``read`` does."""
    document = _object(status, body)
    metadata = document.get("ResponseMetadata")
    if not isinstance(metadata, dict):
        raise EnvelopeError(f"The answer has no ResponseMetadata (HTTP {status}).", status=status)
    request_id = str(metadata.get("RequestId", ""))
    error = metadata.get("Error")
    if isinstance(error, dict):
        code, message = str(error.get("Code", "")), str(error.get("Message", ""))
        raise PlatformError(code, message, status=status, request_id=request_id)
    result = document.get("Result")
    if not isinstance(result, dict):
        raise EnvelopeError(f"The answer has no Result.Result (HTTP {status}).", status=status)
    return request_id, result


def _object(status: int, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        start = body[:80].decode("utf-8", "replace")
        raise EnvelopeError(
            f"The answer is not JSON (HTTP {status}): {start!r}", status=status
        ) from None
    if not isinstance(document, dict):
        raise EnvelopeError(f"The answer is not a JSON object (HTTP {status}).", status=status)
    return document
