"""Floods of connections: a neighbour's session is answered meanwhile, by whomever they come."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, http, text
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

HEAD = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = HEAD.replace(b"GET", b"POST")
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
KINDS = {
    "pipelines": (HEAD + b"\r\n") * 50,
    "idle": b"",
    "unfinished heads": HEAD,
    "unfinished bodies": POST + b"Content-Length: 9\r\n\r\nx",
    "unfinished handshakes": HEAD + UPGRADE,
    "huge heads": HEAD + b"a: " + b"b" * 400_000 + b"\r\n\r\n",
    "tiny chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5_000,
}
SOURCE = Path(__file__).with_name("flooding.py")
CALLS, WORST_S, WORST_TIMES = 12, 2.0, 30
FLOOD_S = 600  # it is ended when the neighbour has its answers


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator(open_files_limit=8192) as running:
        text(running, "print(1)", session="neighbour")
        yield running


def calls(double: Emulator) -> list[float]:
    """Return how long some warm calls of a session take, in seconds."""
    took = []
    for number in range(CALLS):
        begun = time.perf_counter()
        assert text(double, f"print({number})", session="neighbour") == f"{number}\n"
        took.append(time.perf_counter() - begun)
    return took


def judge(stress: Stress, calm: list[float], flooded: list[float]) -> None:
    """Hold the neighbour's slowest call against what it took before."""
    stress.tried += len(flooded)
    stress.figures["slowest"] = f"{max(flooded) * 1000:.0f} ms"
    stress.figures["before"] = f"{max(calm) * 1000:.0f} ms"
    if max(flooded) > max(WORST_S, WORST_TIMES * max(calm)):
        stress.failed(f"a call took {max(flooded):.1f} s, and {max(calm):.3f} s before")


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_floods_with(double: Emulator, stress: Stress, kind: str) -> None:
    """By thousands of connections in the long form."""
    calm = calls(double)
    port = double.url.rpartition(":")[2]
    count = str(stress.scale(100, 3000))
    command = [sys.executable, "-SE", str(SOURCE), port, count, str(FLOOD_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as flooding:
        assert flooding.stdin is not None
        flooding.stdin.write(KINDS[kind])
        flooding.stdin.close()
        try:
            judge(stress, calm, calls(double))
        finally:
            flooding.kill()
    assert http.get(f"{double.url}/_emulator/health").json()["status"] == "ok"


def test_a_session_floods_with_pipelines(double: Emulator, stress: Stress) -> None:
    """Its own next call is answered, too, when it has ended."""
    calm = calls(double)
    port, count = int(double.url.rpartition(":")[2]), stress.scale(100, 5000)
    seconds = stress.scale(2, 20)
    code = f"{SOURCE.read_text()}\nprint(flood({port}, {count}, {KINDS['pipelines']!r}, {seconds}))"
    flooding: Future[str] = background(lambda: text(double, code, session="flooding"))
    judge(stress, calm, calls(double))

    assert flooding.result(120) == f"{count}\n"

    assert text(double, "print(2)", session="flooding") == "2\n"
