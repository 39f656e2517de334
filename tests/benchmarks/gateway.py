"""Figures of ``/jupyter`` beside Jupyter's Kernel Gateway: both over HTTP and WebSockets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from websockets.sync.client import connect

from tests.agentdouble.jupyter.notebook_client import V1, Notebook
from tests.benchmarks.peers import PEERS, SERVE, ratio
from tests.benchmarks.table import Row, Section
from tests.real_targets.processes import serving, version

GATEWAY = ("-m", "kernel_gateway", "--KernelGatewayApp.port={port}")
TOKEN = "benchmark"
ROUNDS, CELLS, STARTS = 10, 50, 12
UNTIL_READY_S = 0.3
ABOUT = (
    "The same client, over HTTP and a WebSocket with a token, calls `/jupyter` of `agentdouble "
    "serve` and a Kernel Gateway, each in a process of its own, with a log line for each HTTP "
    "request. The double also keeps its journal. The kernels of the Gateway are never isolated, "
    "those of the double are, unless a line says otherwise. The Gateway starts each kernel as a "
    "program; the double forks it, on request or before."
)
# The settings of a double, and what the lines say of it.
DOUBLES = {
    "isolated": {"AGENTDOUBLE_POOL_SIZE": "0"},
    "not isolated": {"AGENTDOUBLE_POOL_SIZE": "0", "AGENTDOUBLE_ISOLATION": "none"},
    "isolated, a ready kernel": {},
}
GATEWAY_NAME = "Kernel Gateway"


def sections(cache: Path) -> Iterator[Section]:
    """Measure in an environment below ``cache``."""
    python = PEERS.made(cache)
    used = f"{GATEWAY_NAME} {version(python, 'jupyter-kernel-gateway')}"
    yield Section("Cells of a notebook", f"{ABOUT} {used}.", rows(python))


def rows(python: str) -> Iterator[Row]:
    """Let doubles and the Gateway take turns."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        urls = {}
        for side, settings in DOUBLES.items():
            environ = {"AGENTDOUBLE_TOKEN": TOKEN, **settings}
            serve = serving(python, *SERVE, folder=Path(name), environ=environ)
            urls[side] = stack.enter_context(serve) + "/jupyter"
        gateway = serving(python, *GATEWAY, folder=Path(name), environ={"KG_AUTH_TOKEN": TOKEN})
        urls[GATEWAY_NAME] = stack.enter_context(gateway)
        started: dict[str, list[float]] = {side: [] for side in urls}
        for _ in range(STARTS):
            for side, url in urls.items():
                started[side].append(_first_cell_ms(url))
                time.sleep(UNTIL_READY_S)  # the pool fills again
        notebooks = {side: stack.enter_context(_notebook(url)) for side, url in urls.items()}
        warm: dict[str, list[float]] = {side: [] for side in urls}
        for _ in range(ROUNDS + 1):
            for side, notebook in notebooks.items():
                warm[side].append(_cells_ms(notebook))
    yield from _beside("a warm cell", warm, list(DOUBLES)[:2], 1.0)
    yield from _beside("a new kernel's first cell and its end", started, list(DOUBLES), None)


def _beside(
    title: str, took: dict[str, list[float]], sides: list[str], wanted: float | None
) -> Iterator[Row]:
    """Yield the times of each side, and their share of the Gateway's; the goal is the first's."""
    floor = took[GATEWAY_NAME][1:]  # the first warms up
    yield Row(f"{title}, {GATEWAY_NAME}", statistics.median(floor), "ms")
    for side in sides:
        yield Row(f"{title}, {side}", statistics.median(took[side][1:]), "ms")
    for side in sides:
        share = ratio(list(zip(took[side][1:], floor, strict=True)))
        yield Row(
            f"{title}, {side}", share, "of the Gateway's", wanted if side == sides[0] else None
        )


@contextmanager
def _notebook(url: str) -> Iterator[Notebook]:
    """Make a kernel, run a cell, and end the kernel afterwards."""
    headers = {"Authorization": f"token {TOKEN}"}
    with httpx.Client(base_url=f"{url}/api", headers=headers, timeout=60) as http:
        id_ = http.post("/kernels", json={"name": "python3"}).raise_for_status().json()["id"]
        channels = f"{url.replace('http', 'ws', 1)}/api/kernels/{id_}/channels"
        with connect(channels, additional_headers=headers, subprotocols=[V1], proxy=None) as socket:  # type: ignore[list-item]
            notebook = Notebook(socket)
            notebook.text("1")
            yield notebook
        http.delete(f"/kernels/{id_}").raise_for_status()


def _first_cell_ms(url: str) -> float:
    start = time.perf_counter()
    with _notebook(url):
        return (time.perf_counter() - start) * 1e3


def _cells_ms(notebook: Notebook) -> float:
    times = []
    for _ in range(CELLS):
        start = time.perf_counter()
        notebook.text("1 + 1")
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
