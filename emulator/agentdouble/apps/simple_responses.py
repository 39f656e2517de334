"""The responses of a simple application: results, streams, errors and probes (section 4.1)."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response
from typing_extensions import TypedDict

from agentdouble.core import ledger
from agentdouble.core.clock import Clock

SERVICE = "agent-service"
ENTRYPOINT_FAILED = (
    "An error occurred inside the user-defined entrypoint function (decorated with "
    "@app.entrypoint). Check the application's log."
)
_NEWLINE = re.compile(r"\r\n|\r|\n")


def result(value: Any) -> Response:
    """Return an entrypoint's value as a JSON response (INV-04, U-INVOKE-ENVELOPE)."""
    if isinstance(value, Response):
        return value
    if ledger.choose("U-INVOKE-ENVELOPE") == "object":
        value = {"response": value}
    return Response(_json(value), media_type="application/json")


def event(chunk: Any) -> bytes:
    """Return a yielded chunk as one SSE event (INV-05, U-INVOKE-SSE-CHUNK)."""
    raw = isinstance(chunk, str) and ledger.choose("U-INVOKE-SSE-CHUNK") == "raw"
    lines = _NEWLINE.split(chunk) if raw else [_json(chunk)]
    return ("".join(f"data: {line}\n" for line in lines) + "\n").encode("utf-8", "replace")


def stream_failure(error: BaseException) -> bytes:
    """Return a failure in a stream as one SSE event (INV-06, U-INVOKE-STREAM-ERROR)."""
    body = {"error": str(error)}
    if ledger.choose("U-INVOKE-STREAM-ERROR") == "detailed":
        body["error_type"] = type(error).__name__
        body["message"] = "An error occurred during streaming"
    return f"data: {_json(body)}\n\n".encode()


def failure(status: int, message: str, kind: str) -> Response:
    """Return an error in the simple application's shape (U-INVOKE-ERROR)."""
    return JSONResponse({"error": {"message": message, "type": kind}}, status)


def entrypoint_failure(error: BaseException) -> Response:
    """Return the answer to an entrypoint that raised (INV-07, U-INVOKE-ERROR)."""
    if ledger.choose("U-INVOKE-ERROR") == "text":
        return PlainTextResponse("Internal Server Error", 500)
    return failure(500, ENTRYPOINT_FAILED, type(error).__name__)


def ping_response(value: Any) -> Response:
    """Return the ping function's value (PRB-01, U-PROBE-BODIES)."""
    return _probe(value, {"status": value})


class State(TypedDict):
    """The state of an application, with its time in seconds."""

    status: str
    timestamp: float
    service: str


def state(status: str, clock: Clock) -> Response:
    """Return the answer of health, readiness or liveness (PRB-02 to PRB-04)."""
    now = clock.now().timestamp()
    return _probe(status, {"status": status, "timestamp": now, "service": SERVICE})


def _probe(value: Any, full: dict[str, Any]) -> Response:
    shape = ledger.choose("U-PROBE-BODIES")
    if shape == "text":
        return PlainTextResponse(str(value))
    body = str(value) if shape == "json-string" else full
    return Response(_json(body), media_type="application/json")


def _json(value: Any) -> str:
    """Return a value as JSON with literal non-ASCII; other values are converted with ``str()``."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        value = str(value)
        text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which can be escaped
        return json.dumps(value)
    return text
