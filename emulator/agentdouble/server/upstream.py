"""The connections to one server, kept for some time for later requests."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import SplitResult, urlsplit

from agentdouble.core.threads import import_in_thread, run_in_thread
from agentdouble.errors import AnswerLostError
from agentdouble.server.upstream_connection import RawHeaders, UpstreamAnswer, UpstreamConnection

CONNECT_TIMEOUT_S = 10.0
KEPT_S = 2.0  # less than the 5 s after which servers close
_PORTS = {"http": 80, "https": 443}


class Connections:
    """The connections to the server at ``url`` (scheme, host and port), as many as are needed."""

    def __init__(
        self, url: str, kept_s: float = KEPT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self._kept_s = kept_s
        self._connect_timeout_s = connect_timeout_s
        parts = self._parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[UpstreamConnection, asyncio.TimerHandle] = {}
        self._all: set[UpstreamConnection] = set()

    async def ask(
        self, method: str, target: str, headers: RawHeaders, body: bytes
    ) -> UpstreamAnswer:
        """Send a request and return its answer with an unread body; raise AnswerLostError.

        ``target`` is path and query. The connection is closed if the call is cancelled or the
        answer is closed.
        """
        connection = await self.open()
        return await connection.ask(_request(self._parts, method, target, headers, body))

    async def open(self) -> UpstreamConnection:
        """Return a free connection or a new one; raise AnswerLostError with ``unreached``."""
        return self.take() or await self._connect()

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._all):
            connection.abort()

    def take(self) -> UpstreamConnection | None:
        """Return a free connection, or None."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, expiry = self._idle.popitem()
            expiry.cancel()
            in_time = now < expiry.when()  # otherwise the loop is late to close it
            if in_time and not connection.closing and connection.quiet:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        tls = await self._trust()
        name = self._host if tls else None
        connecting = loop.create_connection(
            lambda: UpstreamConnection(self._free, self._lost),
            *(self._host, self._port),
            ssl=tls,
            server_hostname=name,
        )
        try:
            _, connection = await asyncio.wait_for(connecting, self._connect_timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            raise AnswerLostError("it does not answer", unreached=True, silent=True) from None
        except (OSError, UnicodeError) as error:  # ssl's errors are OSErrors
            raise AnswerLostError(str(error), unreached=True) from None
        self._all.add(connection)
        return connection

    async def _trust(self) -> ssl.SSLContext | None:
        if self._parts.scheme == "http":
            return None
        if self._tls is None:
            await import_in_thread("httpx")
            import httpx  # slow: 0.1 s

            self._tls = await run_in_thread(httpx.create_ssl_context)
        return self._tls

    def _free(self, connection: UpstreamConnection) -> None:
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.call_later(self._kept_s, connection.abort)

    def _lost(self, connection: UpstreamConnection) -> None:
        self._all.discard(connection)
        expiry = self._idle.pop(connection, None)
        if expiry is not None:
            expiry.cancel()


def _request(
    parts: SplitResult, method: str, target: str, headers: RawHeaders, body: bytes
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1\r\nhost: {parts.netloc}\r\n".encode()]
    lines += [b"%s: %s\r\n" % pair for pair in headers]
    if body or method == "POST":
        lines.append(b"content-length: %d\r\n" % len(body))
    return b"".join([*lines, b"\r\n", body])
