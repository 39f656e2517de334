"""The data plane of a session on a node: requests and WebSockets pass through the front."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus

from agentdouble import faults
from agentdouble.core import ledger
from agentdouble.errors import AnswerLostError, SandboxError
from agentdouble.sandbox.data_plane.forwarding import bridge, target
from agentdouble.sandbox.data_plane.session_token import sandbox_error
from agentdouble.sandbox.nodes.node import FAULT, OURS, SCHEME, SESSION, UNKNOWNS, Node, described
from agentdouble.server.exchange import OF_THE_SERVER, OF_THIS_HOP, StreamedExchange
from agentdouble.server.upstream_connection import RawHeaders, UpstreamAnswer

if TYPE_CHECKING:
    from agentdouble.sandbox.nodes.node_part import NodePart

_STAYS_HERE = (OF_THIS_HOP - {b"content-length"}) | OF_THE_SERVER
_IDLE = "/v1/browser/"  # a browser that is connected does not count as work


def _without(headers: RawHeaders, names: Container[bytes]) -> list[tuple[bytes, bytes]]:
    """Return headers without these and without those that only front and node may send."""
    return [(n, v) for n, v in headers if n not in names and not n.startswith(OURS)]


class DataPlaneProxy:
    """Passes requests for the data plane of one session on to its node."""

    def __init__(self, part: NodePart) -> None:
        self._part = part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        part, pass_on = self._part, self._websocket
        if scope["type"] == "http":
            pass_on = self._http
        is_idle = (scope["path"] + "/").startswith(_IDLE)
        working = contextlib.nullcontext() if is_idle else part.session.working()
        try:
            with working:
                node = await part.open()
                await pass_on(node, scope, receive, send)
        except SandboxError as error:
            refusal = await sandbox_error(HTTPConnection(scope), error)
            await refusal(scope, receive, send)
        except ClientDisconnect:  # no client is left to receive the answer
            return

    async def _http(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        part, fault = self._part, faults.injected_fault()

        async def headers_back(answer: UpstreamAnswer) -> RawHeaders:
            for unknown in (answer.header(UNKNOWNS.encode()) or "").split():
                ledger.choose(unknown)
            facts = json.loads(answer.header(SESSION.encode()) or "{}")
            await part.note_fault(fault, happened=facts.get("fault_happened", False))
            part.note(facts)
            return _without(answer.headers, _STAYS_HERE)

        exchange = StreamedExchange(scope, receive, send, headers_back)
        headers = _without(scope["headers"], OF_THIS_HOP)
        headers.append((SCHEME.encode(), scope["scheme"].encode()))
        headers += [(FAULT.encode(), json.dumps(described(fault)).encode()), *node.key]
        try:
            await node.tell_choices()
            await exchange.run(await node.connections.open(), target(scope), headers)
        except AnswerLostError as error:
            refusal = part.cut_off(error)
            if exchange.answered:
                raise ConnectionError(str(refusal)) from error  # the client must see the break
            raise refusal from error

    async def _websocket(self, node: Node, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        uri = f"ws{node.url.removeprefix('http')}{target(scope).decode('latin-1')}"
        headers = [
            (name.decode(), value.decode("latin-1"))
            for name, value in [(SCHEME.encode(), scope["scheme"].encode()), *node.key]
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
            raise self._part.cut_off(AnswerLostError(str(error))) from error
        if await bridge(websocket, inside):
            code = inside.close_code or 1001
            await websocket.close(1001 if code == 1006 else code, inside.close_reason or "")
