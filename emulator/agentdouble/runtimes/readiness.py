"""The port of an instance, and how the double learns that the instance is ready for requests."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from contextlib import suppress
from typing import Any

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.streams import Process

HOST = "127.0.0.1"
# below the ports that Linux and macOS give to connections: one of those might take it meanwhile
_PORTS = range(20_000, 32_768)
_TRIES = 100
_random = random.SystemRandom()  # not seeded, so that processes choose different ports

_POLL_S = 0.005  # the largest delay that this adds to a cold start
_NOT_YET = 503
_QUESTION = b"GET /readiness HTTP/1.1\r\nHost: %b:%d\r\nConnection: close\r\n\r\n"
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r\n]")
_LONGEST_STATUS_LINE, _SHOWN = 4096, 40  # bytes
_LONGEST = 300  # characters of an instance's last words


def free_port() -> int:
    """Return a free port of this machine; raise OSError."""
    for port in _random.sample(_PORTS, _TRIES):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise OSError("no free port was found")


class Readiness:
    """Polls an instance until it is ready."""

    def __init__(self, process: Process, port: int, log: InstanceLog) -> None:
        self._process = process
        self._port = port
        self._log = log
        self._seen = self._unheard = f"it does not listen on $PORT {port} of {HOST}"

    async def wait(self, name: str, timeout_s: float) -> None:
        """Return when it is ready; raise RuntimeStartError if it has ended, or at the timeout."""
        polling = asyncio.ensure_future(self._poll())
        either: set[asyncio.Future[Any]] = {polling, self._process.exited}
        try:
            done, _ = await asyncio.wait(
                either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
        if self._process.exited.done():
            await self._process.finished()
            lines = (line for line in reversed(self._log.tail(100)) if line.stream != "stdout")
            texts = (line.text.strip() for line in lines)
            # the end of a traceback, or the double's last message
            words = next(filter(None, texts), "")[:_LONGEST].rstrip(".")
            ending = f"its process {self._process.manner}"
            raise RuntimeStartError(name, f"{ending}: {words}" if words else ending)
        if not done:
            reason = f"it was not ready after {timeout_s:g} s, its start_timeout_s: {self._seen}"
            self._log.note(reason)
            raise RuntimeStartError(name, reason)

    async def _poll(self) -> None:
        while not await self._is_ready():  # noqa: ASYNC110 (another process sends no event)
            await asyncio.sleep(_POLL_S)

    async def _is_ready(self) -> bool:
        try:
            head = await self._answer()
        except ConnectionRefusedError:
            return False
        except OSError as error:
            head = str(error).encode()
        match = _STATUS_LINE.match(head)
        if match is None:
            self._seen = f"GET /readiness is not answered in HTTP ({head[:_SHOWN]!r})"
            return False
        self._seen = f"GET /readiness is answered with {_NOT_YET}"
        return int(match[1]) != _NOT_YET

    async def _answer(self) -> bytes:
        """Return the beginning of the answer, up to its status.

        This uses a plain socket, because the call may be cancelled at any moment: an HTTP client
        that is cancelled while it connects may leave the connection open. It also needs a tenth of
        the processor time, and the instance needs that time to start.
        """
        loop, head = asyncio.get_running_loop(), b""
        with socket.socket() as connection:
            connection.setblocking(False)
            await loop.sock_connect(connection, (HOST, self._port))
            if self._seen == self._unheard:  # an earlier answer says more
                self._seen = "GET /readiness gives no answer"
            await loop.sock_sendall(connection, _QUESTION % (HOST.encode(), self._port))
            while b"\n" not in head and len(head) < _LONGEST_STATUS_LINE:
                piece = await loop.sock_recv(connection, _LONGEST_STATUS_LINE)
                if not piece:
                    break
                head += piece
        return head
