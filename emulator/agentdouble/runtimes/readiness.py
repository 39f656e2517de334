"""The port of an instance, and how the double learns that the instance is ready for requests."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from agentdouble import threads
from agentdouble.processes import usage
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.streams import Process

HOST = "127.0.0.1"
_GIVEN_FROM = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL, _LOWEST, _COUNT = 32_768, 10_000, 12_768
_TRIES = 100
_random = random.SystemRandom()  # not seeded, so that processes choose different ports


@contextmanager
def free_port() -> Iterator[int]:
    """Yield a free port of this machine; no other instance gets it inside the block.

    An instance binds the port some time later. If it were a port that the system gives to
    connections, a connection might have it by then.
    """
    for port in _random.sample(_below_those_given(), _TRIES):
        with _held(port) as ours:
            if ours and _is_free(port):
                yield port
                return
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
    yield found


def _below_those_given() -> range:
    """Return ports below the range that this system gives to connections and to port 0."""
    try:
        first = int(_GIVEN_FROM.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = _USUAL
    end = first if _LOWEST + _TRIES <= first <= _USUAL else _USUAL
    return range(max(_LOWEST, end - _COUNT), end)


@contextmanager
def _held(port: int) -> Iterator[bool]:
    """Reserve a port against the instances of every double; yield whether that succeeded.

    The reservation is the name of an abstract socket, which disappears with its process. Only Linux
    has such names; on other systems the random choice keeps the ports apart.
    """
    if sys.platform != "linux":
        yield True
        return
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(f"\0agentdouble-port-{port}")
        except OSError:
            yield False
        else:
            yield True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


_POLL_S = 0.005  # the largest delay that this adds to a cold start
_NOT_YET = 503
_QUESTION = b"GET /readiness HTTP/1.1\r\nHost: %b:%d\r\nConnection: close\r\n\r\n"
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r\n]")
_LONGEST_STATUS_LINE, _SHOWN = 4096, 40  # bytes
_REACHED_BY_HOST = (HOST, "0.0.0.0", "::")  # noqa: S104 (what others may listen on)
_NAMED = 3  # paths in an error
_LONGEST = 300  # characters of an instance's last words


class Readiness:
    """Polls an instance until it is ready."""

    def __init__(self, process: Process, port: int, log: InstanceLog) -> None:
        self._process = process
        self._port = port
        self._log = log
        self._seen: str | None = None
        self._connected = False

    async def wait(self) -> None:
        """Return when it is ready or has ended."""
        asking = asyncio.ensure_future(self._ask_until_ready())
        either: set[asyncio.Future[Any]] = {asking, self._process.exited}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    async def how_it_ended(self) -> str:
        """Return how an instance ended, with its last words."""
        await self._process.finished()
        how = f"its process {self._process.manner}"
        words = _last_words(self._log)
        hidden = what_is_hidden(self._process.hidden)
        if hidden:
            hidden += ", or name an interpreter with the runtime's key python"
        return (f"{how}: {words}" if words else how) + hidden

    async def why_not(self) -> str:
        """Return the reason why a living instance is not ready."""
        if self._seen is not None:
            return self._seen
        if self._connected:
            return "GET /readiness gives no answer"
        places = await threads.run_in_thread(lambda: _listening(self._process.pid))
        wanted = f"$PORT {self._port} of {HOST}"
        if not places:
            return f"it does not listen on {wanted}"
        if any(f"{host}:{self._port}" in places for host in _REACHED_BY_HOST):
            return "GET /readiness gives no answer"
        return f"it listens on {', '.join(places)}, not on {wanted}"

    async def _ask_until_ready(self) -> None:
        while not await self._is_ready():  # noqa: ASYNC110 (another process sends no event)
            await asyncio.sleep(_POLL_S)

    async def _is_ready(self) -> bool:
        try:
            head = await self._answer()
        except ConnectionRefusedError:
            return False
        except OSError as error:
            self._seen = f"it answers GET /readiness with no HTTP ({error})"
            return False
        found = _STATUS_LINE.match(head)
        if found is None:
            began = head[:_SHOWN].decode("latin-1")
            self._seen = f"it answers GET /readiness with no HTTP ({began!r})"
            return False
        self._seen = "GET /readiness answers 503 still"
        return int(found[1]) != _NOT_YET

    async def _answer(self) -> bytes:
        """Return the beginning of the answer, up to its status.

        This uses a plain socket, because the call may be cancelled at any moment: an HTTP client
        that is cancelled while it connects may leave the connection open. It also needs a tenth of
        the processor time, and the instance needs that time to start.
        """
        loop, head = asyncio.get_running_loop(), b""
        with socket.socket() as asked:
            asked.setblocking(False)
            await loop.sock_connect(asked, (HOST, self._port))
            self._connected = True
            await loop.sock_sendall(asked, _QUESTION % (HOST.encode(), self._port))
            while b"\n" not in head and len(head) < _LONGEST_STATUS_LINE:
                piece = await loop.sock_recv(asked, _LONGEST_STATUS_LINE)
                if not piece:
                    break
                head += piece
        return head


def what_is_hidden(paths: Sequence[str]) -> str:
    """Return the paths that a confined process misses, and the setting that shows them."""
    if not paths:
        return ""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    named = ", ".join(path[:_LONGEST] for path in paths[:_NAMED])
    return (
        f"; isolation does not show {named}{more}, which its command names: list what it needs in "
        "visible_paths"
    )


def _last_words(log: InstanceLog) -> str:
    """Return the last line of its errors, which ends a traceback, or the double's last message."""
    lines = (line for line in reversed(log.tail(100)) if line.stream != "stdout")
    words = (line.text.strip() for line in lines)
    return next(filter(None, words), "")[:_LONGEST].rstrip(".")


def _listening(pid: int) -> list[str]:
    """Return the addresses where a process, or a child of it, listens."""
    pids = {process.pid for process in usage.tree([pid], usage.processes())}
    with suppress(psutil.Error):
        return sorted(
            ":".join(map(str, one.laddr))
            for one in psutil.net_connections("tcp")
            if one.pid in pids and one.status == psutil.CONN_LISTEN
        )
    return []
