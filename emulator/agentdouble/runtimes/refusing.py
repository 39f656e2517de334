"""What a caller is told whose request reaches no instance, or gets no answer there."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from agentdouble.errors import (
    AccessError,
    HostingError,
    InstanceLostError,
    RuntimeBusyError,
    RuntimeEndedError,
    RuntimeStartError,
    UnknownRuntimeError,
)
from agentdouble.runtimes.authentication import render

_STATUSES: dict[type[HostingError], int] = {
    InstanceLostError: 502,
    RuntimeStartError: 502,
    RuntimeBusyError: 503,
    RuntimeEndedError: 503,
    UnknownRuntimeError: 404,
}
_WORDS: dict[type[HostingError], str] = {
    AccessError: "access",
    RuntimeStartError: "start",
    RuntimeBusyError: "busy",
    RuntimeEndedError: "ended",
}


def refusal(error: HostingError, path: str) -> Response:
    """Return an error in the shape of the simple application's; who may call, in ``path``'s own."""
    if isinstance(error, AccessError):
        return render(error, path)
    kind, headers = type(error).__name__, {}
    if isinstance(error, UnknownRuntimeError):
        kind = "NotFound"
    elif isinstance(error, RuntimeBusyError):
        headers = {"Retry-After": str(error.retry_after_s)}
    return _answer(_STATUSES.get(type(error), 500), kind, str(error), headers)


def headers_too_large(limit: int) -> Response:
    """Return the refusal of a request whose headers have more bytes than ``limit``."""
    message = f"The request's headers are larger than {limit} bytes."
    return _answer(431, "HeadersTooLarge", message)


def word(error: HostingError) -> str:
    """Return in a word what went wrong, for those who count it."""
    if isinstance(error, InstanceLostError):
        return "broken" if error.amid else "lost"
    return _WORDS.get(type(error), "")


def _answer(
    status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> Response:
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)
