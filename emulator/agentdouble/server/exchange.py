"""An HTTP request that is passed on to a server behind this one while its answer comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agentdouble.errors import AnswerLostError
from agentdouble.server.upstream_connection import RawHeaders, UpstreamAnswer, UpstreamConnection

# Headers of the connection to this server alone. The exchange itself sends the body's length.
OF_THIS_HOP = frozenset(
    (
        *(b"connection", b"content-length", b"expect", b"keep-alive", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
OF_THE_SERVER = frozenset((b"date", b"server"))  # this server sets them itself
_STATUSES = range(200, 600)


class StreamedExchange:
    """A request and its answer, either of which may be endless.

    ``headers_back`` returns the headers of an answer for the caller. ``answered`` is whether the
    caller has the head of the answer.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers_back: Callable[[UpstreamAnswer], Awaitable[RawHeaders]],
    ) -> None:
        self._method: bytes = scope["method"].encode()
        self._receive = receive
        self._send = send
        self._headers_back = headers_back
        sent = dict(scope["headers"])
        self._chunked = b"transfer-encoding" in sent
        self._length: bytes | None = None if self._chunked else sent.get(b"content-length")
        self._has_body = self._chunked or self._length not in (None, b"0")
        self.answered = False

    async def run(self, connection: UpstreamConnection, target: bytes, headers: RawHeaders) -> None:
        """Return when the answer has been sent; raise AnswerLostError or ClientDisconnect."""
        head = self._head(target, headers)
        is_head = self._method == b"HEAD"
        answer = connection.begin(head, bodiless=is_head, more=self._has_body)
        into = asyncio.ensure_future(self._pass_in(connection))
        out = asyncio.ensure_future(self._pass_back(answer))
        try:
            await asyncio.wait({into, out}, return_when=asyncio.FIRST_COMPLETED)
            await (out if out.done() else into)
        finally:
            for way in (into, out):
                way.cancel()
            await asyncio.gather(into, out, return_exceptions=True)
            answer.close()

    def _head(self, target: bytes, headers: RawHeaders) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self._method, target)]
        lines += [b"%b: %b" % pair for pair in headers]
        if self._chunked:
            lines.append(b"transfer-encoding: chunked")
        elif self._length is not None:
            lines.append(b"content-length: " + self._length)
        return b"\r\n".join([*lines, b"\r\n"])

    async def _pass_in(self, connection: UpstreamConnection) -> None:
        """Pass the body on, then wait for the caller to disconnect; raise ClientDisconnect."""
        has_more = self._has_body
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if has_more:
                body, has_more = message.get("body", b""), message.get("more_body", False)
                if self._chunked:
                    body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
                    body += b"" if has_more else b"0\r\n\r\n"
                await connection.send(body, more=has_more)

    async def _pass_back(self, answer: UpstreamAnswer) -> None:
        await answer.wait_for_head()
        if answer.status not in _STATUSES:
            raise AnswerLostError(f"its answer has the status {answer.status}")
        headers = await self._headers_back(answer)
        self.answered = True
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await self._send(start)
        while not answer.done:
            body = await answer.read()
            has_more = not answer.done
            await self._send({"type": "http.response.body", "body": body, "more_body": has_more})
