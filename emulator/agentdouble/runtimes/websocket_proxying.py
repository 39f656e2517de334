"""Pass a WebSocket on to an instance, in both directions, until one side closes it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
from typing import TYPE_CHECKING, Any

from starlette.types import Message, Receive, Scope, Send

from agentdouble.errors import InstanceLostError
from agentdouble.runtimes import headers
from agentdouble.runtimes.headers import Address
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.ports import HOST
from agentdouble.serving import LARGEST_WEBSOCKET_MESSAGE
from agentdouble.threads import import_in_thread
from agentdouble.upstream import RawHeaders

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.client import ClientProtocol
    from websockets.http11 import Response

_DONE, _GOING_AWAY = 1000, 1001
_NO_CODE, _BROKEN = 1005, 1006  # codes of a close without a code
_LOST = 1014  # sent by a gateway that has lost its backend
_MESSAGES_WAITING = 4  # with more messages, the sender has to wait
_CLOSE_TIMEOUT_S = 2
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclasses.dataclass(frozen=True)
class _End:
    """Why a conversation has ended."""

    code: int
    reason: str


async def pass_on(
    instance: Instance,
    address: Address,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Pass a WebSocket on.

    If the instance refuses the handshake, the caller gets the same status. Raises
    InstanceLostError if the instance does not answer the handshake.
    """
    await import_in_thread("websockets.asyncio.client")
    from websockets.exceptions import InvalidStatus

    heard = asyncio.ensure_future(_first(receive))
    opening = asyncio.ensure_future(_open(instance, address, scope))
    try:
        await asyncio.wait({heard, opening}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():  # otherwise the caller has left
            await _Conversation(opening.result(), address, scope, receive, send).run(heard)
    except InvalidStatus as refused:
        await _refuse(refused.response, address, scope, send)
    finally:
        for task in (heard, opening):
            task.cancel()
        await asyncio.gather(heard, opening, return_exceptions=True)


async def _first(receive: Receive) -> Message:
    """Return the first message after the one that requests the connection."""
    message = await receive()
    return await receive() if message["type"] == "websocket.connect" else message


async def _open(instance: Instance, address: Address, scope: Scope) -> ClientConnection:
    """Return the connection that the instance has accepted; raise as ``pass_on`` does."""
    from websockets.exceptions import InvalidStatus, WebSocketException

    try:
        return await _connected(instance, address, scope)
    except InvalidStatus:
        raise
    except (OSError, EOFError, WebSocketException) as error:
        unreached = isinstance(error, ConnectionRefusedError)
        runtime = instance.definition.name
        raise InstanceLostError(runtime, instance.name, str(error), unreached=unreached) from error


async def _connected(instance: Instance, address: Address, scope: Scope) -> ClientConnection:
    from websockets.asyncio.client import ClientConnection, connect

    target = address.target(scope["query_string"])

    class Straight(connect):
        """Follows no redirects, because the caller follows them."""

        def process_redirect(self, exc: Exception) -> Exception:
            return exc

    class Verbatim(ClientConnection):
        """Requests the target exactly as the caller wrote it."""

        def __init__(self, protocol: ClientProtocol, **options: Any) -> None:
            path, _, query = target.decode("latin-1").partition("?")
            protocol.uri = dataclasses.replace(protocol.uri, path=path, query=query)
            super().__init__(protocol, **options)

    host = headers.value(scope["headers"], b"host") or HOST.encode()
    passed = headers.onward(scope, address)
    return await Straight(
        f"ws://{host.decode('latin-1')}/",
        host=HOST,
        port=instance.port,
        create_connection=Verbatim,
        subprotocols=_protocols(scope) or None,
        additional_headers=[(n.decode("latin-1"), v.decode("latin-1")) for n, v in passed],
        user_agent_header=None,
        compression=None,
        proxy=None,
        open_timeout=None,
        ping_interval=None,  # an instance that dies closes its connections
        close_timeout=_CLOSE_TIMEOUT_S,
        max_size=LARGEST_WEBSOCKET_MESSAGE,
        max_queue=_MESSAGES_WAITING,
    )


def _protocols(scope: Scope) -> list[Any]:
    """Return the protocols that the caller offers; uvicorn 0.35 gives each header as one."""
    offered = [one.strip() for line in scope.get("subprotocols", ()) for one in line.split(",")]
    return [one for one in offered if _TOKEN.fullmatch(one)]


async def _refuse(response: Response, address: Address, scope: Scope, send: Send) -> None:
    status = response.status_code
    passed = headers.back(status, _raw(response), scope, address)
    await send({"type": "websocket.http.response.start", "status": status, "headers": passed})
    await send({"type": "websocket.http.response.body", "body": response.body or b""})


def _raw(response: Response) -> RawHeaders:
    items = ((name.lower(), value) for name, value in response.headers.raw_items())
    # websockets before 17 decodes bytes beyond ASCII as surrogates, later versions as Latin-1
    return [(n.encode(), v.encode("latin-1", "replace")) for n, v in items]


class _Conversation:
    """The messages between a caller and an instance after both have accepted the connection."""

    def __init__(
        self,
        inside: ClientConnection,
        address: Address,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._inside = inside
        self._address = address
        self._scope = scope
        self._receive = receive
        self._send = send

    async def run(self, heard: asyncio.Future[Message]) -> None:
        """Pass messages until either side ends; ``heard`` is the caller's first message."""
        try:
            await self._accept()
            into = asyncio.ensure_future(self._pass_in(heard))
            out = asyncio.ensure_future(self._pass_back())
            try:
                await asyncio.wait({into, out}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in (into, out):
                    way.cancel()
                await asyncio.gather(into, out, return_exceptions=True)
            if not out.cancelled():
                await self._close(out.result())
            else:
                await self._leave(into.result())
        finally:
            self._inside.transport.abort()  # if it is still open

    async def _accept(self) -> None:
        response = self._inside.response
        assert response is not None
        passed = headers.back(response.status_code, _raw(response), self._scope, self._address)
        chosen = self._inside.subprotocol
        await self._send({"type": "websocket.accept", "subprotocol": chosen, "headers": passed})

    async def _pass_in(self, heard: asyncio.Future[Message]) -> _End:
        """Return why the caller has closed the connection."""
        from websockets.exceptions import ConnectionClosed

        message = await heard
        while message["type"] != "websocket.disconnect":
            text = message.get("text")
            try:
                await self._inside.send(message["bytes"] if text is None else text)
            except ConnectionClosed:
                await asyncio.Event().wait()  # its earlier messages are still on their way back
            message = await self._receive()
        code: int = message.get("code", _NO_CODE)
        said = {_NO_CODE: _DONE, _BROKEN: _GOING_AWAY}.get(code, code)
        return _End(said, message.get("reason") or "")

    async def _pass_back(self) -> _End:
        """Return why the instance has closed the connection, or that the caller has left."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                message = await self._inside.recv()
                kind = "text" if isinstance(message, str) else "bytes"
                await self._send({"type": "websocket.send", kind: message})
        except OSError:  # the caller has left
            return _End(_GOING_AWAY, "")
        except ConnectionClosed:
            return self._said()

    def _said(self) -> _End:
        """Return why the instance has closed the connection."""
        code = self._inside.close_code
        if code is None or code == _BROKEN:
            return _End(_LOST, f"The runtime {self._address.name} is gone.")
        return _End(_DONE if code == _NO_CODE else code, self._inside.close_reason or "")

    async def _leave(self, end: _End) -> None:
        """Close the instance's side because the caller has closed, and discard further messages."""
        unheard = asyncio.ensure_future(self._unheard())
        try:
            await self._inside.close(end.code, end.reason)
        finally:
            unheard.cancel()
            await asyncio.gather(unheard, return_exceptions=True)

    async def _unheard(self) -> None:
        while True:
            await self._inside.recv()

    async def _close(self, end: _End) -> None:
        with contextlib.suppress(OSError):  # the caller has left
            message = {"type": "websocket.close", "code": end.code, "reason": end.reason}
            await self._send(message)
