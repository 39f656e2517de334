"""The cost of runtimes: a cold start, and the gateway, compared with the bare application.

    python -m pytest -s tests/benchmarks/bench_runtimes.py -o python_files='bench_*.py' \
        -o python_functions='bench_*'

The bare application is a SimpleApp, started with the command of its runtime and called until it
answers; for the gateway it is a runtime's instance, called at its own port. The SimpleApp is not
isolated, and neither has a journal or a log. A runtime is isolated as the machine offers it, and
its gateway has the double's journal. The rounds of the two take turns, so that a load on the
machine meets both.
"""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from agentdouble import Emulator
from agentdouble.runtimes.instance import HOST, free_port
from agentdouble.runtimes.launching import HOSTING

ROUNDS = 12
MOST_MS = 50.0
GATEWAY_ROUNDS, CALLS = 15, 40
APPLICATIONS = Path(__file__).parents[1] / "agentdouble" / "runtimes" / "applications"
TARGET = "simple:app"


def by_itself_ms() -> float:
    """Return the time until the application's first answer."""
    port = free_port()
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(HOSTING), TARGET],
        cwd=APPLICATIONS,
        env={"PATH": os.environ["PATH"], "PORT": str(port)},
        stderr=subprocess.DEVNULL,
    ) as process:
        while not answers(f"{HOST}:{port}", "/ping"):
            time.sleep(0.001)
        took = time.perf_counter() - began
        process.terminate()
    return took * 1000


def through_ms(double: Emulator) -> float:
    """Return the time of the first request to a new runtime."""
    double.runtimes.create("cold", directory=APPLICATIONS, application=TARGET)
    netloc = urlsplit(double.url).netloc
    began = time.perf_counter()
    assert answers(netloc, "/runtimes/cold/ping")
    took = time.perf_counter() - began
    double.runtimes.delete("cold")
    return took * 1000


def answers(netloc: str, path: str) -> bool:
    connection = http.client.HTTPConnection(netloc)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except ConnectionError:
        return False
    finally:
        connection.close()


def bench_a_cold_start_costs_little_more_than_the_applications_own() -> None:
    """Print the minimum and the median of each; the first round of a double is a warm-up."""
    with Emulator() as double:
        first = through_ms(double)
        pairs = [(by_itself_ms(), through_ms(double)) for _ in range(ROUNDS)]

    own, through = ([pair[side] for pair in pairs] for side in (0, 1))
    medians = statistics.median(own), statistics.median(through)
    print(f"\nby itself: {min(own):.0f} ms, median {medians[0]:.0f} ms")
    print(f"through the gateway: {min(through):.0f} ms, median {medians[1]:.0f} ms")
    print(f"the first of a double: {first:.0f} ms")
    assert min(through) - min(own) <= MOST_MS


class Asked:
    """Sends requests over one connection, and returns the time to the first bytes of a body."""

    def __init__(self, netloc: str, head: str, body: bytes = b"", until: bytes = b"") -> None:
        host, _, port = netloc.partition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self._request = f"{head} HTTP/1.1\r\nHost: {netloc}\r\n{length}\r\n".encode() + body
        self._until = until

    def took_ms(self) -> float:
        began, received = time.perf_counter(), b""
        self._socket.sendall(self._request)
        while self._until not in received:
            received += self._socket.recv(65536)
        took = time.perf_counter() - began
        assert received.startswith(b"HTTP/1.1 200"), received
        while b"chunked" in received and not received.endswith(b"0\r\n\r\n"):
            received += self._socket.recv(65536)
        return took * 1000

    def close(self) -> None:
        self._socket.close()


def port_of(double: Emulator, runtime: str) -> int:
    """Return the port of a runtime's only instance."""
    headers = {"X-API-Key": double.token}
    url = f"{double.url}/_emulator/runtimes"
    runtimes = httpx.get(url, headers=headers).json()["runtimes"]
    (entry,) = (item for item in runtimes if item["name"] == runtime)
    (instance,) = entry["instances"]
    return int(instance["port"])


def compared(title: str, head: str, path: str, body: bytes, until: bytes, most_ms: float) -> None:
    """Print and check the medians of the quietest rounds, direct and through the gateway."""
    table = {"name": "bench", "application": TARGET, "directory": str(APPLICATIONS)}
    with Emulator(runtimes=[table]) as double:
        netloc = urlsplit(double.url).netloc
        through = Asked(netloc, f"{head} /runtimes/bench{path}", body, until)
        through.took_ms()  # starts it
        direct = Asked(f"{HOST}:{port_of(double, 'bench')}", f"{head} {path}", body, until)
        medians: tuple[list[float], list[float]] = ([], [])
        for _ in range(GATEWAY_ROUNDS):
            for call, figures in zip((direct, through), medians, strict=True):
                figures.append(statistics.median(call.took_ms() for _ in range(CALLS)))
        direct.close()
        through.close()
    alone, behind = (min(figures[1:]) for figures in medians)  # the first warms up
    print(f"\n{title}: {alone:.2f} ms direct, {behind:.2f} ms through the gateway")
    assert behind - alone <= most_ms


def bench_a_probe_through_the_gateway() -> None:
    """It takes at most 1.5 ms more than a probe of the instance."""
    compared("a probe", "GET", "/ping", b"", b"pong", 1.5)


def bench_the_first_event_through_the_gateway() -> None:
    """It arrives at most 2 ms later than from the instance."""
    body = b'{"prompt": "one two three"}'
    compared("the first event", "POST", "/invoke", body, b"data: ", 2.0)
