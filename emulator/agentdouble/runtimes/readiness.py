"""When an instance is ready for requests, and what is told where it never is.

Its port accepts, and its ``/readiness`` answers anything but 503: what has no such path is ready
with its port.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import httpcore
import psutil

from agentdouble import threads
from agentdouble.processes import usage
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.ports import HOST
from agentdouble.runtimes.process import Process

_POLL_S = 0.005  # a cold start is noticed that much late
_NOT_YET = 503
_REACHED_BY_HOST = (HOST, "0.0.0.0", "::")  # noqa: S104 (what others may listen on)
_LONGEST = 300  # characters of an instance's last words


class Readiness:
    """Whether an instance is ready, asked again and again."""

    def __init__(self, process: Process, port: int, log: InstanceLog) -> None:
        self._process = process
        self._port = port
        self._log = log
        self._seen: str | None = None

    async def wait(self) -> None:
        """Return when it is ready, or has ended."""
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
        return f"{how}: {words}" if words else how

    async def why_not(self) -> str:
        """Return what keeps an instance that lives from being ready."""
        if self._seen is not None:
            return self._seen
        places = await threads.beside(lambda: _listening(self._process.pid))
        wanted = f"$PORT {self._port} of {HOST}"
        if not places:
            return f"it does not listen on {wanted}"
        if any(f"{host}:{self._port}" in places for host in _REACHED_BY_HOST):
            return "GET /readiness gives no answer"
        return f"it listens on {', '.join(places)}, not on {wanted}"

    async def _ask_until_ready(self) -> None:
        while not (await self._accepts() and await self._is_ready()):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)

    async def _accepts(self) -> bool:
        """Try its port: a tenth of what a request costs while the instance needs the processor."""
        with socket.socket() as probe:
            probe.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(probe, (HOST, self._port))
            except OSError:
                return False
            return True

    async def _is_ready(self) -> bool:
        url = httpcore.URL(scheme="http", host=HOST, port=self._port, target="/readiness")
        connection = httpcore.AsyncHTTPConnection(url.origin)
        headers = [("Host", f"{HOST}:{self._port}"), ("Connection", "close")]
        try:
            status = await self._status(connection, httpcore.Request("GET", url, headers=headers))
        except httpcore.ConnectError:
            return False
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            self._seen = f"it answers GET /readiness with no HTTP ({error or type(error).__name__})"
            return False
        finally:
            await connection.aclose()
        self._seen = "GET /readiness answers 503 still"
        return status != _NOT_YET

    async def _status(
        self, connection: httpcore.AsyncHTTPConnection, request: httpcore.Request
    ) -> int:
        response = await connection.handle_async_request(request)
        await response.aclose()
        return response.status


def _last_words(log: InstanceLog) -> str:
    """Return the last line of its errors, which a traceback ends with, or what was said of it."""
    lines = (line for line in reversed(log.tail(100)) if line.stream != "stdout")
    words = (line.text.strip() for line in lines)
    return next(filter(None, words), "")[:_LONGEST].rstrip(".")


def _listening(pid: int) -> list[str]:
    """Return where a process, or one that it has started, listens."""
    pids = {process.pid for process in usage.tree([pid], usage.processes())}
    with suppress(psutil.Error):
        return sorted(
            ":".join(map(str, one.laddr))
            for one in psutil.net_connections("tcp")
            if one.pid in pids and one.status == psutil.CONN_LISTEN
        )
    return []
