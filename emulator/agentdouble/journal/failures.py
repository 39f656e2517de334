"""The double's own failures, reported by a reference that is also in its log and its journal.

They must not look like an answer of an application or an agent. On every surface the answer is an
error of status 500 in the surface's own format, and its message has the reference.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Iterator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.errors import PlatformError, StateError
from agentdouble.journal.entries import note_failure
from agentdouble.server import exhaustion
from agentdouble.server.guard import Refusal, Render, render_json
from agentdouble.server.protocols import TRANSPORT, hang_up

KIND = "InternalError"
STATE = "StateError"  # the code if the state cannot be kept, which has its own status
STOPPING = Refusal(
    503,
    "ServerStopping",
    "The server is stopping, and ended this request before it had an answer. "
    "Send it again when the server is back.",
)
INTERNAL = 1011  # the close code of a WebSocket whose server fails
_REFERENCE = re.compile(r"\bfailure-[0-9a-f]{12}\b")

_log = logging.getLogger(__name__)


def report(error: BaseException, work: str, *, shown: bool = True) -> str:
    """Log a failure of the double, note it in the journal and return the message for the caller.

    If ``shown`` is false, the message does not contain the error, because that may contain a
    secret. A lack of resources is not logged each time.
    """
    reference = f"failure-{secrets.token_hex(6)}"
    note_failure(reference)
    reason = f": {type(error).__name__}: {error}".rstrip(". ") if shown else ""
    if exhaustion.tell(f"{work} ({reference})", error):
        return f"The double failed{reason} ({reference})."
    _log.error("%s failed: %s", work, reference, exc_info=error)
    return f"The double failed{reason}. Its log says more, at {reference}."


def note_again(text: str) -> str:
    """Note at the current request a failure that was reported before; return the message."""
    for reference in _REFERENCE.findall(text):
        note_failure(reference)
    return text


def beneath(error: BaseException) -> str | None:
    """Return the double's message about its own failure, if that is why an agent failed.

    The agent called the double, ``run_code`` raised an error, and the agent did not catch it.
    """
    for exc in _chain(error):
        if isinstance(exc, PlatformError) and (exc.code == STATE or _REFERENCE.search(exc.message)):
            return note_again(exc.message)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


class ServerErrorMiddleware:
    """A middleware that answers if the application fails, or when the server stops.

    If the answer has started, the connection is closed before its end, so that no client mistakes a
    part of it for the whole. A request that other code in this process cancels stays cancelled.
    """

    def __init__(self, app: ASGIApp, render: Render = render_json) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        sender = _Sender(send)
        try:
            await self._app(scope, receive, sender.send)
        except (ClientDisconnect, HTTPException, WebSocketDisconnect):  # caused by the caller
            raise
        except Exception as error:
            if sender.client_left and isinstance(error, OSError):
                raise  # raised by the server, which also handles it
            refusal = _refusal(error, scope)
            if scope["type"] == "websocket":
                await self._close(WebSocket(scope, receive, send), refusal, sender)
            elif not sender.started:
                await self._render(HTTPConnection(scope), refusal)(scope, receive, send)
            return  # the server breaks off an answer that had started
        except asyncio.CancelledError:  # only a server that stops cancels its requests
            if scope["type"] != "http" or TRANSPORT not in scope:
                raise
            if sender.started:
                await hang_up(scope, receive)
            else:
                await self._render(HTTPConnection(scope), STOPPING)(scope, receive, send)
            return
        await sender.flush()

    async def _close(self, websocket: WebSocket, refusal: Refusal, sender: _Sender) -> None:
        if sender.closed:
            return
        if sender.started or "websocket.http.response" not in websocket.scope.get("extensions", {}):
            reason = next(iter(_REFERENCE.findall(refusal.message)), refusal.kind)
            await sender.send({"type": "websocket.close", "code": INTERNAL, "reason": reason})
            return
        await websocket.send_denial_response(self._render(websocket, refusal))


def _refusal(error: Exception, scope: Scope) -> Refusal:
    if isinstance(error, StateError):
        return Refusal(error.status, STATE, str(error))
    return Refusal(500, KIND, report(error, f"A request for {scope['path']}"))


class _Sender:
    """A wrapper of ``send`` that holds a 500 answer back until no error was raised after it.

    Starlette answers an error with a plain text of its own, and then raises the error again.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._kept: list[Message] = []
        self.started = False
        self.closed = False
        self.client_left = False

    async def send(self, message: Message) -> None:
        """Pass a message on, or hold it back."""
        bare = message["type"] == "http.response.start" and message["status"] == 500
        if bare or (self._kept and not message.get("more_body", False)):
            self._kept.append(message)
            return
        await self.flush()
        self.started = True
        self.closed = self.closed or message["type"] == "websocket.close"
        try:
            await self._send(message)
        except OSError:  # in ASGI this means that the client has disconnected
            self.client_left = True
            raise

    async def flush(self) -> None:
        """Pass on the messages that were held back."""
        messages, self._kept = self._kept, []
        for message in messages:
            self.started = True
            await self._send(message)
