"""The double's own failures: told by a reference that its log and its journal have as well.

Nobody is to take them for an answer of an application or an agent. Whatever surface is asked, its
answer is an error of status 500 in the surface's own shape, and its message has the reference.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.errors import PlatformError, StateError
from agentdouble.guard import Refusal, Render
from agentdouble.journal import note_failure

KIND = "InternalError"
STATE = "StateError"  # the code where the state keeps nothing, which has a status of its own
INTERNAL = 1011  # the close code of a WebSocket whose server fails
_REFERENCE = re.compile(r"\bfailure-[0-9a-f]{12}\b")

_log = logging.getLogger(__name__)


def report(error: BaseException, what: str, *, shown: bool = True) -> str:
    """Log a failure of the double and note it in the journal; return what the caller is told.

    Without ``shown`` that is not the error itself, which may have somebody's secret in it.
    """
    reference = f"failure-{secrets.token_hex(6)}"
    _log.error("%s failed: %s", what, reference, exc_info=error)
    note_failure(reference)
    reason = f": {type(error).__name__}: {error}".rstrip(". ") if shown else ""
    return f"The double failed{reason}. Its log says more, at {reference}."


def note_again(told: str) -> str:
    """Note at the request at hand what was reported at another, or at none; return it."""
    for reference in _REFERENCE.findall(told):
        note_failure(reference)
    return told


def beneath(error: BaseException) -> str | None:
    """Return what the double has said of a failure of its own, if that is why an agent failed.

    The agent asked the double for something, ``run_code`` raised, and it let that pass.
    """
    for one in _chain(error):
        if isinstance(one, PlatformError) and (one.code == STATE or _REFERENCE.search(one.message)):
            return note_again(one.message)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


class Failing:
    """An ASGI application in front of another, which answers for it where it fails."""

    def __init__(self, app: ASGIApp, render: Render) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        held = _Held(send)
        try:
            await self._app(scope, receive, held.send)
        except (ClientDisconnect, HTTPException, WebSocketDisconnect):  # the caller's doing
            raise
        except Exception as error:
            if held.left and isinstance(error, OSError):
                raise  # to the server, which has raised it
            refusal = _refusal(error, scope)
            if scope["type"] == "websocket":
                await self._close(WebSocket(scope, receive, send), refusal, held)
            elif not held.begun:
                await self._render(HTTPConnection(scope), refusal)(scope, receive, send)
            return  # an answer that had begun is broken off by the server
        await held.flush()

    async def _close(self, websocket: WebSocket, refusal: Refusal, held: _Held) -> None:
        if held.closed:
            return
        if held.begun or "websocket.http.response" not in websocket.scope.get("extensions", {}):
            reason = next(iter(_REFERENCE.findall(refusal.message)), refusal.kind)
            await held.send({"type": "websocket.close", "code": INTERNAL, "reason": reason})
            return
        await websocket.send_denial_response(self._render(websocket, refusal))


def _refusal(error: Exception, scope: Scope) -> Refusal:
    if isinstance(error, StateError):
        return Refusal(error.status, STATE, str(error))
    return Refusal(500, KIND, report(error, f"A request for {scope['path']}"))


class _Held:
    """Passes an answer on; one of status 500 when it is known that nothing was raised after it.

    Starlette answers what fails with a bare text of its own, and raises it again.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._kept: list[Message] = []
        self.begun = False
        self.closed = False
        self.left = False

    async def send(self, message: Message) -> None:
        """Pass a message on, or keep it."""
        bare = message["type"] == "http.response.start" and message["status"] == 500
        if bare or (self._kept and not message.get("more_body", False)):
            self._kept.append(message)
            return
        await self.flush()
        self.begun = True
        self.closed = self.closed or message["type"] == "websocket.close"
        try:
            await self._send(message)
        except OSError:  # as ASGI has a server say that the client has gone
            self.left = True
            raise

    async def flush(self) -> None:
        """Pass on what was kept."""
        kept, self._kept = self._kept, []
        for message in kept:
            self.begun = True
            await self._send(message)
