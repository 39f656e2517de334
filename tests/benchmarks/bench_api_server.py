"""The API server of a double against another one, side by side in one run.

Both must serve an application ``echo`` that says one text, and ``streamer`` that yields 200
increments and the whole::

    python -m tests.benchmarks.bench_api_server http://127.0.0.1:8000 http://127.0.0.1:8001

The first URL is ours. Start both servers so that they keep sessions at the same place and write the
same logs, as ``peers`` does. CPU is what the process that listens there uses, in milliseconds a
request; the rounds of the two take turns, so that a load on the machine meets both.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.benchmarks.conftest import pss_mib

ROUNDS = 5
MESSAGE = {"role": "user", "parts": [{"text": "hi"}]}
SESSIONS = "/apps/{app}/users/bench/sessions"
HISTORY = 1000


@dataclass(frozen=True)
class Measured:
    """Server CPU and median time per request, both in milliseconds."""

    cpu_ms: float
    p50_ms: float


class Server:
    """A server under measurement, called over one persistent connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._process = _listening(self._port)

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            self._host, self._port, limit=1 << 26
        )

    def close(self) -> None:
        self._writer.close()

    def rss_mib(self) -> float:
        return self._process.memory_info().rss / 1024 / 1024

    def tree_mib(self) -> float:
        """Return the memory of the process and all that it started (PSS)."""
        processes = [self._process, *self._process.children(recursive=True)]
        return sum(pss_mib(process.pid) for process in processes)

    def cpu_s(self) -> float:
        # The CPU clock of another process, see clock_getcpuclockid(3): unlike the times in /proc,
        # it does not tick every 10 ms.
        return time.clock_gettime(~self._process.pid << 3 | 2)

    async def post(self, path: str, body: Any) -> bytes:
        if self._reader.at_eof():  # servers close what is idle for some seconds
            self.close()
            await self.open()
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in answer, answer
        if b"transfer-encoding" in answer:
            return await self._chunks()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        return await self._reader.readexactly(length)

    async def _chunks(self) -> bytes:
        read = b""
        while size := int(await self._reader.readline(), 16):
            read += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return read

    async def session(self, app: str) -> str:
        created: dict[str, str] = json.loads(await self.post(SESSIONS.format(app=app), {}))
        return created["id"]

    async def run(self, app: str, session: str, path: str = "/run") -> bytes:
        names = {"appName": app, "userId": "bench", "sessionId": session}
        return await self.post(path, {**names, "newMessage": MESSAGE, "streaming": True})


async def measure(server: Server, call: Callable[[], Awaitable[object]], times: int) -> Measured:
    """Repeat one request."""
    took = []
    cpu_s = server.cpu_s()
    for _ in range(times):
        started = time.perf_counter()
        await call()
        took.append(time.perf_counter() - started)
    return Measured((server.cpu_s() - cpu_s) / times * 1000, statistics.median(took) * 1000)


async def create(server: Server) -> Measured:
    return await measure(server, lambda: server.session("echo"), 1000)


async def run(server: Server) -> Measured:
    async def one() -> None:
        await server.run("echo", sessions[len(done) // 5])
        done.append(1)

    done: list[int] = []
    sessions = [await server.session("echo") for _ in range(100)]
    return await measure(server, one, 500)


async def stream(server: Server) -> Measured:
    """Return the cost per event of a stream of 200, including the request."""

    async def one() -> None:
        answer = await server.run("streamer", sessions.pop(), "/run_sse")
        assert 201 == answer.count(b"data: "), answer

    sessions = [await server.session("streamer") for _ in range(50)]
    all_calls = await measure(server, one, 50)
    return Measured(all_calls.cpu_ms / 200, all_calls.p50_ms / 200)


async def history(server: Server) -> float:
    """Return how much longer a run takes in a session with 1,000 events than in a new one."""
    full, empty = await server.session("echo"), await server.session("echo")
    for _ in range(HISTORY // 2):
        await server.run("echo", full)
    new = await measure(server, lambda: server.run("echo", empty), 20)
    old = await measure(server, lambda: server.run("echo", full), 20)
    return old.p50_ms / new.p50_ms


def _listening(port: int) -> psutil.Process:
    for process in psutil.process_iter():
        try:
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return process
        except psutil.Error:
            continue
    raise SystemExit(f"No process of yours listens on port {port}.")


async def main(urls: list[str]) -> None:
    servers = [Server(url) for url in urls]
    for server in servers:
        await server.open()
    print(f"{'':>28}  {'ours':>8} {'other':>8}  ratio")
    _show("resident memory at first, MiB", [server.rss_mib() for server in servers])
    for name, ask in (("create a session", create), ("/run", run), ("a streamed event", stream)):
        rounds = [[await ask(server) for server in servers] for _ in range(ROUNDS)]
        for figure in ("cpu_ms", "p50_ms"):
            by_server = zip(*rounds, strict=True)
            medians = [statistics.median(getattr(m, figure) for m in runs) for runs in by_server]
            _show(f"{name}, {figure}", medians)
    _show(f"run with {HISTORY} events, times", [await history(server) for server in servers])
    for server in servers:
        server.close()


def _show(title: str, values: list[float]) -> None:
    double_value, other = values
    print(f"{title:>28}  {double_value:8.3f} {other:8.3f}  {double_value / other:5.2f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    asyncio.run(main(sys.argv[1:]))
