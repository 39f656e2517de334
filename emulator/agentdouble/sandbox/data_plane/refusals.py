"""The refusals of the data plane: the public sandbox's envelope, with a suitable HTTP status."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from agentdouble.errors import (
    BrowserError,
    BrowserMissingError,
    DirectoryError,
    InstanceBusyError,
    InstanceEndedError,
    InstancePausedError,
    KernelStartError,
    LimitError,
    NotBuiltError,
    ResourceExhaustedError,
    UnknownLanguageError,
    WorkbenchError,
)
from agentdouble.guard import Refusal

REFUSED = (401, 404, 405, 410)  # of the middleware and the routes
_STATUS: dict[type[Exception], int] = {
    BrowserError: 502,
    BrowserMissingError: 503,
    DirectoryError: 400,
    InstanceBusyError: 409,
    InstanceEndedError: 410,
    InstancePausedError: 409,
    KernelStartError: 500,
    LimitError: 429,
    NotBuiltError: 501,
    ResourceExhaustedError: 429,
    UnknownLanguageError: 400,
    WorkbenchError: 502,
}


STATUSES = sorted({*_STATUS.values(), *REFUSED})


class Refused(Exception):  # noqa: N818 (a decision, not a failure)
    """A refused request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def render_refused(refused: Refused) -> Response:
    """Return the answer to a refused request."""
    return envelope(None, str(refused), success=False, status=refused.status)


def render_refusal(refusal: Refusal) -> Response:
    """Return the answer to a request that the guard refuses, in the data plane's format."""
    return render_refused(Refused(refusal.status, refusal.message))


def envelope(
    data: object,
    message: str = "Operation successful",
    *,
    success: bool = True,
    status: int = 200,
    extra: Mapping[str, object] | None = None,
) -> Response:
    """Return an answer in the public sandbox's envelope; ``extra`` holds further fields."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    document = {"success": success, "message": message, "data": data, "hint": None, **(extra or {})}
    return JSONResponse(document, status, headers)


async def sandbox_error(_connection: HTTPConnection, error: Exception) -> Response:
    """Return the answer to a request that fails with an error of the sandbox."""
    return render_refused(Refused(_STATUS.get(type(error), 500), str(error)))


async def refused(_request: Request, error: Exception) -> Response:
    """Return the answer to a request that a route refuses."""
    assert isinstance(error, Refused)
    return render_refused(error)
