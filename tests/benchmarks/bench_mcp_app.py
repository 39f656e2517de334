"""A trivial tool through the double against the same tool on a bare MCPServer of the SDK.

    python -m tests.benchmarks.bench_mcp_app [CALLS]

Each server has a process of its own and is asked over one connection that is kept; the calls
take turns, so that a load on the machine meets both. A call is a POST that is answered with a
stream of one event. CPU is what the server's process uses for a call: it tells more than the
time where the machine is busy.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.agentdouble import mcp_wire

CALLS = 2000
WARM = 200
TOOLS = """
    @app.tool()
    def sync(a: int, b: int) -> int:
        return a + b

    @app.tool()
    async def later(a: int, b: int) -> int:
        return a + b
"""
BARE = f"""
import sys
from mcp.server import MCPServer

app = MCPServer("bare", log_level="WARNING")
if True:{TOOLS}
app.run("streamable-http", port=int(sys.argv[1]))
"""
DOUBLE = f"""
from agentdouble import MCPApp

app = MCPApp("double")
if True:{TOOLS}
"""


class Server:
    """A server under measurement, in a session of its own, or without one."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self._process = process
        self._session = mcp_wire.open_session(f"http://127.0.0.1:{port}/mcp", None)
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def close(self) -> None:
        self._connection.close()

    def cpu_ms(self) -> float:
        """Return what the process has used so far."""
        times = self._process.cpu_times()
        return (times.user + times.system) * 1000

    def take_ms(self, tool: str, era: str) -> float:
        """Return how long a call takes."""
        begun = time.perf_counter()
        self._call(tool, era)
        return (time.perf_counter() - begun) * 1000

    def _call(self, tool: str, era: str) -> None:
        arguments = {"a": 2, "b": 3}
        if era == mcp_wire.MODERN:
            body, headers = mcp_wire.modern(tool, arguments), mcp_wire.modern_headers(None, tool)
        else:
            body = mcp_wire.message("tools/call", {"name": tool, "arguments": arguments})
            headers = mcp_wire.headers(None, self._session)
        self._connection.request("POST", "/mcp", json.dumps(body), headers)
        answer = self._connection.getresponse().read()
        assert b'"result":5' in answer.replace(b" ", b""), answer


def main(calls: int) -> None:
    """Measure and show both."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bare, tools = Path(folder, "bare.py"), Path(folder, "tools.py")
        bare.write_text(BARE)
        tools.write_text(DOUBLE)
        port, other = _free_port(), _free_port()
        double = [
            "-c",
            "from agentdouble.cli import main; main()",
            "serve",
            f"{tools}:app",
            "--quiet",
            "--port",
            str(port),
        ]
        running = [
            (port, stack.enter_context(_running(double, port))),
            (other, stack.enter_context(_running([str(bare), str(other)], other))),
        ]
        servers = [stack.enter_context(contextlib.closing(Server(*one))) for one in running]
        for era in (mcp_wire.LEGACY, mcp_wire.MODERN):
            for tool in ("sync", "later"):
                _compare(f"{era}, {tool}", servers, tool, era, calls)


def _compare(what: str, servers: list[Server], tool: str, era: str, calls: int) -> None:
    for server in servers * WARM:
        server.take_ms(tool, era)
    used = [server.cpu_ms() for server in servers]
    taken = [[server.take_ms(tool, era) for server in servers] for _ in range(calls)]
    cpu = [(server.cpu_ms() - one) / calls for server, one in zip(servers, used, strict=True)]
    _show(f"{what}, time", [statistics.median(one) for one in zip(*taken, strict=True)])
    _show(f"{what}, CPU", cpu)


def _show(what: str, measured: list[float]) -> None:
    ours, bare = measured
    print(f"{what:>24}  double {ours:.3f} ms  bare {bare:.3f} ms  {ours / bare:.2f}", flush=True)


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[psutil.Process]:
    process = psutil.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield process
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise SystemExit(f"Nothing answers at port {port}.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS)
