"""A proxy that loses answers: it resets, delays or answers 502 to every n-th request."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DELAY_S = 0.5
BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 24\r\n"
    b"Connection: close\r\n\r\n<h1>502 Bad Gateway</h1>"
)


class Proxy:
    """Forwards each request to a port; every ``period``-th one meets the next kind of loss."""

    def __init__(self, port: int, period: int, kinds: tuple[str, ...]) -> None:
        self._port = port
        self._period = period
        self._count = itertools.count(1)
        self._kinds = itertools.cycle(kinds)
        self.lost: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one request and close the connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            kind = "" if next(self._count) % self._period else next(self._kinds)
            if kind:
                self.lost.append(f"{kind} {head.partition(b' HTTP')[0].decode()}")
            if kind == "reset":
                writer.transport.abort()
                return
            if kind == "502":
                writer.write(BAD_GATEWAY)
            else:
                await asyncio.sleep(DELAY_S if kind == "delay" else 0)
                await self._forward(head, body, writer)
            await writer.drain()
        writer.close()

    async def _forward(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        reader, upstream = await asyncio.open_connection("127.0.0.1", self._port)
        head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
        upstream.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
        try:
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        finally:
            upstream.close()


@contextmanager
def losing(
    port: int, period: int, kinds: tuple[str, ...] = ("reset", "delay", "502")
) -> Iterator[tuple[str, Proxy]]:
    """Yield the URL of a proxy in front of a port of this machine."""
    proxy, loop = Proxy(port, period, kinds), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(proxy.serve, "127.0.0.1", 0)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
