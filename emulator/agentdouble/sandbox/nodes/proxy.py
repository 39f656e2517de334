"""The data plane of a session on a node: requests and WebSockets pass through the front."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from agentdouble import faults
from agentdouble.core import ledger
from agentdouble.errors import AnswerLostError, SandboxError
from agentdouble.sandbox.data_plane.forwarding import pass_in
from agentdouble.sandbox.data_plane.session_token import sandbox_error
from agentdouble.sandbox.nodes.node import FAULT, SCHEME, SESSION, UNKNOWNS, Node, described
from agentdouble.sandbox.workbench.wire import until_one_ends
from agentdouble.server.upstream import Answer, Connection, RawHeaders

if TYPE_CHECKING:
    from agentdouble.sandbox.nodes.node_instance import NodeInstance

_OF_THIS_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer"),
        *(b"transfer-encoding", b"upgrade", b"expect", b"date", b"server"),
    )
)
_FOR_THE_FRONT = frozenset((SESSION.encode(), UNKNOWNS.encode()))
_IDLE = "/v1/browser/"  # a browser that is connected does not count as work


class DataPlaneProxy:
    """Passes requests for the data plane of one session on to its node."""

    def __init__(self, instance: NodeInstance) -> None:
        self._instance = instance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        instance, pass_on = self._instance, self._websocket
        if scope["type"] == "http":
            pass_on = self._http
        is_idle = (scope["path"] + "/").startswith(_IDLE)
        working = contextlib.nullcontext() if is_idle else instance.working()
        try:
            with working:
                node = await instance.open()
                instance.note_use()
                await pass_on(node, scope, receive, send)
        except SandboxError as error:
            refusal = await sandbox_error(HTTPConnection(scope), error)
            await refusal(scope, receive, send)
        except ClientDisconnect:  # no client is left to receive the answer
            return

    def _lost(self, node: Node, error: AnswerLostError) -> SandboxError:
        reason = f"its node {node.name} {node.reason or f'broke off ({error})'}"
        self._instance.lose(reason)
        message = f"The session is lost, and the call may have run: {reason}."
        return SandboxError(message, "InternalError.Node", 502)

    async def _http(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self._instance, node, scope, receive, send)
        try:
            await node.tell_choices()
            await exchange.run(await node.connect())
        except AnswerLostError as error:
            refusal = self._lost(node, error)
            if exchange.has_begun:
                raise ConnectionError(str(refusal)) from error  # the client must see the break
            raise refusal from error

    async def _websocket(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        uri = f"ws{node.url.removeprefix('http')}{_target(scope).decode('latin-1')}"
        headers = [
            (name.decode(), value.decode("latin-1"))
            for name, value in node.headers([(SCHEME.encode(), scope["scheme"].encode())])
        ]
        try:
            inside = await connect(
                uri, additional_headers=headers, compression=None, max_size=None, proxy=None
            )
        except InvalidStatus as error:
            answer = error.response
            await websocket.send_denial_response(
                Response(answer.body, answer.status_code, media_type="application/json")
            )
            return
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise self._lost(node, AnswerLostError(str(error))) from error
        async with inside:
            await websocket.accept()
            with contextlib.suppress(ConnectionClosed):
                await until_one_ends(pass_in(websocket, inside), _outward(websocket, inside))
        if websocket.client_state.name == "CONNECTED":
            code = inside.close_code or 1001
            await websocket.close(1001 if code == 1006 else code, inside.close_reason or "")


class _Exchange:
    """A request that is sent on while its answer is received."""

    def __init__(
        self, instance: NodeInstance, node: Node, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._instance = instance
        self._node = node
        self._scope = scope
        self._receive = receive
        self._send = send
        self._chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        self._fault = faults.injected_fault()
        self.has_begun = False  # whether the answer has

    async def run(self, connection: Connection) -> None:
        """Return when the answer has been sent; raise AnswerLostError or ClientDisconnect."""
        answer = connection.begin(self._head(), bodiless=self._scope["method"] == "HEAD", more=True)
        ways = [
            asyncio.ensure_future(self._inward(connection)),
            asyncio.ensure_future(self._outward(answer)),
        ]
        into, out = ways
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await (out if out.done() else into)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            answer.close()

    def _head(self) -> bytes:
        scope = self._scope
        lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), _target(scope))]
        passed = [(n, v) for n, v in scope["headers"] if n not in _OF_THIS_HOP]
        passed.append((SCHEME.encode(), scope["scheme"].encode()))
        fault = json.dumps(described(self._fault)).encode()
        passed.append((FAULT.encode(), fault))
        if self._chunked:
            passed.append((b"transfer-encoding", b"chunked"))
        lines += [b"%b: %b" % pair for pair in self._node.headers(passed)]
        return b"\r\n".join([*lines, b"", b""])

    async def _inward(self, connection: Connection) -> None:
        """Pass the body on, then wait for the caller to disconnect; raise ClientDisconnect."""
        more = True
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if more:
                body, more = message.get("body", b""), message.get("more_body", False)
                if self._chunked:
                    body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
                    body += b"" if more else b"0\r\n\r\n"
                await connection.send(body, more=more)

    async def _outward(self, answer: Answer) -> None:
        await answer.wait_for_head()
        for unknown in (answer.header(UNKNOWNS.encode()) or "").split():
            ledger.choose(unknown)
        facts = json.loads(answer.header(SESSION.encode()) or "{}")
        await self._instance.note_fault(self._fault, happened=facts.get("fault_happened", False))
        self._instance.note(facts)
        headers: RawHeaders = [
            (n, v) for n, v in answer.headers if n not in _OF_THIS_HOP and n not in _FOR_THE_FRONT
        ]
        self.has_begun = True
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await self._send(start)
        while not answer.done:
            body = await answer.read()
            more = not answer.done
            await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _target(scope: Scope) -> bytes:
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"].partition(b"?")[0]
    return path + b"?" + query if query else path


async def _outward(websocket: WebSocket, inside: ClientConnection) -> None:
    messages: AsyncIterator[str | bytes] = aiter(inside)
    async for message in messages:
        try:
            if isinstance(message, str):
                await websocket.send_text(message)
            else:
                await websocket.send_bytes(message)
        except (RuntimeError, WebSocketDisconnect):  # it has disconnected meanwhile
            return
