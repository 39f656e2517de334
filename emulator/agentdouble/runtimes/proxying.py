"""Pass a request on to an instance, and its answer back, both as they come.

The gateway writes its requests itself. httpx and httpcore read an answer only after the request
has been sent, and cost 0.8 and 0.26 ms; ``agentdouble.upstream`` does both at once for 0.03 ms,
with httptools as parser. It repeats a request only if the request cannot have reached the
application, because the application may have begun to act. If an answer breaks off, the caller's
connection is broken, too, so that half an answer is not taken for the whole.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agentdouble.errors import AnswerLostError, InstanceLostError
from agentdouble.runtimes import headers
from agentdouble.runtimes.headers import Address
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.ports import HOST
from agentdouble.upstream import Answer, Connection, Connections

KEPT_S = 1.0  # no common server closes an idle connection earlier
_STATUSES = range(200, 600)


class Proxy:
    """Keeps connections to instances; belongs to one event loop."""

    def __init__(self) -> None:
        self._connections: WeakKeyDictionary[Instance, Connections] = WeakKeyDictionary()

    async def close(self) -> None:
        """Close every connection."""
        for connections in self._connections.values():
            connections.close()

    async def pass_on(
        self,
        instance: Instance,
        address: Address,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Pass an HTTP request on.

        Raises InstanceLostError if there is no answer or only half of one, and ClientDisconnect if
        the client no longer waits for it.
        """
        request = _Request(scope, address)
        try:
            connection = await self._to(instance).open()
        except AnswerLostError as error:
            raise _lost(instance, error) from error
        exchange = _Exchange(request, connection, receive, send)
        try:
            await exchange.run()
        except AnswerLostError as error:
            raise _lost(instance, error, amid=exchange.answered) from error

    def _to(self, instance: Instance) -> Connections:
        known = self._connections.get(instance)
        if known is None:
            known = Connections(f"http://{HOST}:{instance.port}", KEPT_S)
            self._connections[instance] = known
        return known


def _lost(instance: Instance, error: AnswerLostError, *, amid: bool = False) -> InstanceLostError:
    runtime, unreached = instance.definition.name, error.unreached
    return InstanceLostError(runtime, instance.name, str(error), unreached=unreached, amid=amid)


class _Request:
    """A request as it is sent to an instance."""

    def __init__(self, scope: Scope, address: Address) -> None:
        self.scope = scope
        self.address = address
        self._length = headers.value(scope["headers"], b"content-length")
        coding = headers.value(scope["headers"], b"transfer-encoding")
        self.chunked = coding is not None
        self.has_body = self.chunked or self._length not in (None, b"0")

    def head(self) -> bytes:
        """Return everything that comes before the body."""
        scope = self.scope
        host = headers.value(scope["headers"], b"host") or HOST.encode()
        target = self.address.target(scope["query_string"])
        lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target), b"host: " + host]
        lines += [b"%b: %b" % pair for pair in headers.onward(scope, self.address)]
        if self.chunked:
            lines.append(b"transfer-encoding: chunked")
        elif self._length is not None:
            lines.append(b"content-length: " + self._length)
        return b"\r\n".join([*lines, b"\r\n"])

    def framed(self, body: bytes, more: bool) -> bytes:
        """Return a piece of the body as it is sent."""
        if not self.chunked:
            return body
        piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return piece if more else piece + b"0\r\n\r\n"


class _Exchange:
    """A request that is sent while its answer is received; either may be endless."""

    def __init__(
        self, request: _Request, connection: Connection, receive: Receive, send: Send
    ) -> None:
        self._request = request
        self._connection = connection
        self._receive = receive
        self._send = send
        self.answered = False

    async def run(self) -> None:
        """Return when the answer has been sent; raise AnswerLostError or ClientDisconnect."""
        request = self._request
        is_head = request.scope["method"] == "HEAD"
        answer = self._connection.begin(request.head(), bodiless=is_head, more=request.has_body)
        into = asyncio.ensure_future(self._pass_in())
        out = asyncio.ensure_future(self._pass_back(answer))
        try:
            await asyncio.wait({into, out}, return_when=asyncio.FIRST_COMPLETED)
            await (out if out.done() else into)
        finally:
            for way in (into, out):
                way.cancel()
            await asyncio.gather(into, out, return_exceptions=True)
            answer.close()

    async def _pass_in(self) -> None:
        """Pass the body on, then wait for the caller to disconnect; raise ClientDisconnect."""
        more = self._request.has_body
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if more:
                more = message.get("more_body", False)
                piece = self._request.framed(message.get("body", b""), more)
                await self._connection.send(piece, more=more)

    async def _pass_back(self, answer: Answer) -> None:
        await answer.begun()
        if answer.status not in _STATUSES:
            raise AnswerLostError(f"its answer has the status {answer.status}")
        self.answered = True
        request, status = self._request, answer.status
        passed = headers.back(status, answer.headers, request.scope, request.address)
        await self._send({"type": "http.response.start", "status": status, "headers": passed})
        while not answer.done:
            body = await answer.read()
            more = not answer.done
            await self._send({"type": "http.response.body", "body": body, "more_body": more})
