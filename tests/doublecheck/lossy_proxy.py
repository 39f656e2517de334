"""A proxy that loses answers: it resets, delays or answers 502 to every n-th request."""

from __future__ import annotations

import asyncio
import functools
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
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
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    proxy, ready = Proxy(port, period, kinds), Future[tuple[int, Callable[[], object]]]()

    async def serve() -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        stop = functools.partial(loop.call_soon_threadsafe, stopped.set)
        ready.set_result((server.sockets[0].getsockname()[1], stop))
        await stopped.wait()
        server.close()  # run() cancels the connections that are open

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    address, stop = ready.result()
    try:
        yield f"http://127.0.0.1:{address}", proxy
    finally:
        stop()
        thread.join()
