"""One instance of a runtime: a process with an address, from its start to its end.

``Readiness`` says when it takes requests.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.definition import Definition, Version
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


STOP_TIMEOUT_S = 5.0  # how long an instance may take to end when asked

Launch = Callable[[Definition, int, InstanceLog], Awaitable[Process]]
State = Literal["starting", "ready", "draining", "ended"]


class RuntimeInstance:
    """A process that serves requests; ``in_flight`` counts the requests that it has now.

    ``version`` is the number of the version that it runs. ``created_at`` and ``idle_since`` are
    times of the double's clock. ``served`` counts finished requests, and ``log`` has its output.
    Its runtime sets ``state``, and the reason of an end in ``ended_because``.
    """

    def __init__(
        self, name: str, version: Version, launch: Launch, log: InstanceLog, created_at: dt.datetime
    ) -> None:
        self.name = name
        self.definition = version.definition
        self.version = version.number
        self.created_at = self.idle_since = created_at
        self.port = 0  # until it is started
        self.state: State = "starting"
        self.ended_because = ""
        self.in_flight = 0
        self.served = 0
        self.log = log
        self._launch = launch
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and not self._process.exited.done()

    @property
    def pid(self) -> int | None:
        """The pid of its first process, or None before it is started."""
        return None if self._process is None else self._process.pid

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done when the process has ended; only for an instance that has been started."""
        assert self._process is not None
        return self._process.exited

    @property
    def ready(self) -> bool:
        """Whether the instance takes requests."""
        return self.state == "ready" and self.alive

    @property
    def has_room(self) -> bool:
        """Whether the instance can be given another request."""
        return self.ready and self.in_flight < self.definition.max_concurrency

    async def start(self) -> None:
        """Return when it is ready for requests; raise RuntimeStartError after a clean-up."""
        definition = self.definition
        try:
            self.port = free_port()
        except OSError as error:  # no port or descriptor is left
            raise RuntimeStartError(definition.name, str(error)) from error
        self._process = await self._launched()
        readiness = Readiness(self._process, self.port, self.log)
        try:
            await readiness.wait(definition.name, definition.start_timeout_s)
        except BaseException:
            self.ended_because = self.ended_because or "unstarted"
            await self.end(0)  # a process that has just been forked does not heed SIGTERM yet
            raise

    async def _launched(self) -> Process:
        """Launch the process; if the start is cancelled, finish the launch and end the process."""
        launching = asyncio.ensure_future(self._launch(self.definition, self.port, self.log))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            await asyncio.wait({launching})
            if launching.exception() is None:
                await launching.result().end(0)
            raise

    async def kill(self) -> None:
        """Kill its processes at once; return when they have ended."""
        if self._process is not None:
            await self._process.end(0)

    async def end(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """End its processes, note in its log why and how, and return when they have ended."""
        if self._process is not None:
            await self._process.end(patience_s)
            if self.ended_because:
                self.log.note(f"{self.ended_because}: its process {self._process.manner}")
