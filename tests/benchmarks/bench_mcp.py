"""The cost of a service: a call through it, compared with a direct call of its backend.

    python -m pytest -s tests/benchmarks/bench_mcp.py -o python_files='bench_*.py' \
        -o python_functions='bench_*'

The backend is a bare ``MCPServer`` in a process of its own; the rounds of the two take turns,
so that a load on the machine meets both. The same client calls it over one connection, in one
session. A direct call has no key, no journal and no log of requests. The service adds its key, the
journal and a second session over HTTP, and logs no requests either.
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from tests.agentdouble import mcp_wire

ROUNDS, CALLS = 20, 50
KEY = "bench-key"
MOST_MS = 1.0
BACKEND = """
import socket, sys
import uvicorn
from mcp.server import MCPServer

server = MCPServer("bare", log_level="ERROR")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

listener = socket.socket(fileno=int(sys.argv[1]))
config = uvicorn.Config(server.streamable_http_app(), log_level="error")
uvicorn.Server(config).run([listener])
"""


class Session:
    """Calls a tool in one session, over one connection."""

    def __init__(self, url: str, key: str | None) -> None:
        session = mcp_wire.open_session(url, key)
        self._path = urlsplit(url).path
        self._headers = mcp_wire.headers(key, session)
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        message = mcp_wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        self._body = json.dumps(message)

    def close(self) -> None:
        self._connection.close()

    def took_ms(self) -> float:
        began = time.perf_counter()
        self._connection.request("POST", self._path, self._body, self._headers)
        answer = self._connection.getresponse().read()
        took = time.perf_counter() - began
        assert b'"result":3' in answer, answer
        return took * 1000


@pytest.fixture(scope="module")
def bare() -> Iterator[str]:
    """Return the address of a bare MCPServer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd = listener.fileno()
        process = subprocess.Popen([sys.executable, "-c", BACKEND, str(fd)], pass_fds=[fd])
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        process.terminate()
        process.wait()


def bench_a_service_costs_at_most_a_millisecond(bare: str) -> None:
    """Compare a trivial tool's medians with and without a service, in the quietest rounds."""
    with Emulator() as double:
        double.mcp.create("bench", bare, key=KEY)
        sessions = {
            "direct": Session(bare, None),
            "through": Session(f"{double.url}/mcp/bench", KEY),
        }
        medians: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(ROUNDS):
            for name, session in sessions.items():
                medians[name].append(statistics.median(session.took_ms() for _ in range(CALLS)))
        for session in sessions.values():
            session.close()

    direct, through = (min(medians[name][1:]) for name in sessions)  # the first warms up
    print(f"\nmedians: {direct:.2f} ms direct, {through:.2f} ms through a service")
    assert through - direct <= MOST_MS
