"""``POST /?Action=X&Version=2025-10-30``: parse, authenticate, dispatch, serialise."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from agentdouble import ledger, signing
from agentdouble.clock import Clock
from agentdouble.control_plane import envelope
from agentdouble.control_plane.codes import NOT_BUILT, public_error
from agentdouble.control_plane.envelope import Metadata
from agentdouble.errors import ActionError, NotBuiltError, SignatureError
from agentdouble.guard import Refusal
from agentdouble.invoke_tool import VERSION

_log = logging.getLogger(__name__)

T = TypeVar("T")
Action = Callable[[Mapping[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class ControlPlane:
    """Answers control-plane requests; ``actions`` are those the double has, by name."""

    def __init__(
        self, actions: Mapping[str, Action], credentials: signing.Credentials, clock: Clock
    ) -> None:
        self._actions = actions
        self._credentials = credentials
        self._clock = clock

    async def dispatch(self, request: Request) -> Response:
        """Answer one request with an envelope, whatever happens."""
        metadata = _metadata(request)
        try:
            body = await request.body()
            self._authenticate(request, body, metadata)
            action = self._find(metadata)
            result = await _while_connected(request, action(_json_object(body)))
            return envelope.success(metadata, result)
        except ActionError as error:
            return envelope.failure(metadata, error)
        except (HTTPException, ClientDisconnect):
            raise
        except Exception as error:
            _log.exception("The action %s failed.", metadata.action)
            message = f"The double failed: {type(error).__name__}: {error}"
            return envelope.failure(metadata, ActionError("InternalError", message, status=500))

    def _authenticate(self, request: Request, body: bytes, metadata: Metadata) -> None:
        """Verify the signature (CTL-03) and take region and service from its scope."""
        if ledger.choose("U-SIGNING") == "none":
            return
        ledger.choose("U-SIGNING-SKEW")
        try:
            authorization = signing.verify(
                _signed_parts(request, body), secret_of=self._secret_of, wall=self._clock.wall()
            )
        except SignatureError as error:
            raise public_error(error.code, str(error)) from None
        metadata.region = authorization.scope.region
        metadata.service = authorization.scope.service

    def _secret_of(self, access_key: str) -> str | None:
        known = self._credentials
        return known.secret_key if access_key == known.access_key else None

    def _find(self, metadata: Metadata) -> Action:
        """Return the action asked for; name what is refused (CTL-06)."""
        if metadata.version == VERSION and metadata.action in self._actions:
            return self._actions[metadata.action]
        if metadata.version == VERSION and metadata.action in NOT_BUILT:
            error = NotBuiltError(f"The action {metadata.action}")
            raise ActionError("NotImplemented", str(error), status=501)
        raise public_error(
            "InvalidActionOrVersion",
            f"Could not find operation {metadata.action} for version {metadata.version}.",
        )


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; cancel it if the caller goes away, so that its code is interrupted.

    Raises ClientDisconnect then.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def is_control_plane(connection: HTTPConnection) -> bool:
    """Whether a request is for the control plane: a POST that names an Action at the root."""
    scope = connection.scope  # not connection.url: a Host header can bend that
    return (
        scope.get("method") == "POST"
        and scope["path"] == "/"
        and "Action" in connection.query_params
    )


def render_refusal(connection: HTTPConnection, refusal: Refusal) -> Response:
    """Show a refusal of the guard in the control plane's error shape."""
    error = ActionError(refusal.kind, refusal.message, status=refusal.status)
    return envelope.failure(_metadata(connection), error)


def _metadata(connection: HTTPConnection) -> Metadata:
    query = connection.query_params
    return Metadata(query.get("Action", ""), query.get("Version", ""))


def _signed_parts(request: Request, body: bytes) -> signing.Request:
    return signing.Request(
        method=request.method,
        path=request.scope["path"],
        query=tuple(request.query_params.multi_items()),
        headers=dict(request.headers),
        body=body,
    )


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ActionError("InvalidParameter", f"The request body is not JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ActionError("InvalidParameter", "The request body is not a JSON object.")
    return document
