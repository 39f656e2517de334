"""Rows of the table beside other servers: ``adk api_server`` and Jupyter's Kernel Gateway.

Each server is a process of its own. The double and the other server take turns, so that a load on
the machine meets both. The agents call no model. CPU is what the server's process uses.

Both API servers keep sessions at the same place: in memory, or in a SQLite file, which is the
default of ``adk api_server`` and ``--state`` of the double. Both print a line for each request. The
double also keeps its journal, and runs agents on a thread of their own.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from websockets.sync.client import connect

from tests.agentdouble.jupyter.notebook_client import V1, Notebook
from tests.benchmarks.bench_api_server import Measured, Server, measure
from tests.benchmarks.table import Row
from tests.real_clients.environments import Python
from tests.real_targets.processes import serving

ROOT = Path(__file__).parents[2]
AGENTS = Path(__file__).with_name("adk_agents")
ADK = Python(
    "google-adk",
    ("google-adk[a2a]>=2.13", "jupyter-kernel-gateway>=3,<4", "-e", f"{ROOT}[emulator]"),
)
SERVE = ("-m", "agentdouble", "serve", "--port", "{port}", "--no-console")
API_SERVER = ("-m", "google.adk.cli", "api_server", "--host", "127.0.0.1", "--port", "{port}")
IN_MEMORY = ("--session_service_uri", "memory://", "--artifact_service_uri", "memory://")
# Where both keep sessions: the name, and the options of the double and of adk's server.
STORAGES = (("memory", (), IN_MEMORY), ("a file", ("--state", "sqlite:///state.db"), ()))
GATEWAY = ("-m", "kernel_gateway", "--KernelGatewayApp.port={port}")
TOKEN = "benchmark"
GOALS = {"memory": ("0.54", "0.70", "0.70"), "a file": ("0.60", "0.70", "0.70")}
ROUNDS, TURNS, STREAMS, CALLERS = 10, 20, 8, 16
BLOCK, BLOCKS = 40, 4  # turns of a long session
CELLS = 50

Pair = tuple[Server, Server]


def rows(cache: Path) -> Iterator[Row]:
    """Measure the double beside the other servers, in an environment below ``cache``."""
    ADK.make(cache)
    python = ADK.command(cache)[0]
    for storage, ours, theirs in STORAGES:
        with ExitStack() as stack:
            double = stack.enter_context(_agents(python, *SERVE, *ours, "--agents", "."))
            real = stack.enter_context(_agents(python, *API_SERVER, *theirs, "."))
            yield from asyncio.run(_api_server_mode(storage, double, real))
    yield _cells(python)


@contextmanager
def _agents(python: str, *words: str) -> Iterator[str]:
    """Serve the agents from a folder of its own: the real server keeps its sessions beside them."""
    with TemporaryDirectory() as name:
        for agent in AGENTS.glob("*.py"):
            folder = Path(name) / agent.stem
            folder.mkdir()
            (folder / "agent.py").write_text(agent.read_text("utf-8"), "utf-8")
        with serving(python, *words, folder=Path(name)) as url:
            yield url


async def _api_server_mode(storage: str, *urls: str) -> list[Row]:
    beside = f"beside adk api_server, both in {storage}"
    create, run, at_once = GOALS[storage]
    async with _connected(*urls) as pair:
        created = [[await _created_ms(server) for server in pair] for _ in range(ROUNDS)]
        table = [Row(f"create a session: CPU {beside}", _ratio(created), create)]
        for app in ("said", "llm"):
            used = await _beside(pair, app, TURNS)
            table.append(
                Row(f"/run of google-adk's {app}, young sessions: CPU {beside}", used, run)
            )
        cpu, took = await _at_once(pair)
        table.append(Row(f"/run of {CALLERS} callers at once: CPU {beside}", cpu, at_once))
        table.append(Row(f"the same: time of an answer (p50) {beside}", took, "1.00"))
        streamed = [[await _streamed_ms(server) for server in pair] for _ in range(STREAMS)]
        table.append(Row(f"a stream of 200 events: CPU {beside}", _ratio(streamed), "0.45"))
        if storage == "memory":
            table += await _aged(pair, beside)
    return table


async def _aged(pair: Pair, beside: str) -> list[Row]:
    """Return what long sessions cost, and the memory after all of it."""
    double, real = await _long_session(pair)
    growth = f"{double[-1] / double[0]:.2f} times"
    sizes = [server.rss_mib() for server in pair]
    return [
        Row(f"a turn after {BLOCK * BLOCKS}: CPU {beside}", f"{double[-1] / real[-1]:.2f}", "0.22"),
        Row(f"growth of a turn over {BLOCK * BLOCKS}", growth, "1.2 times"),
        Row("memory afterwards (RSS), and that of adk api_server",
            f"{sizes[0]:.0f}, {sizes[1]:.0f} MiB", "120 MiB"),
    ]  # fmt: skip


@asynccontextmanager
async def _connected(*urls: str) -> AsyncIterator[Pair]:
    double, real = map(Server, urls)
    for server in (double, real):
        await server.open()
        for app in ("said", "streamer", "llm"):
            await _turns_ms(server, app, await server.session(app), 5)  # warms up
    yield double, real
    for server in (double, real):
        server.close()


async def _turns_ms(server: Server, app: str, session: str, times: int) -> float:
    return (await measure(server, lambda: server.run(app, session), times)).cpu_ms


async def _beside(pair: Pair, app: str, turns: int) -> str:
    """Return the ratio of the CPU of turns in new sessions."""
    rounds = [
        [await _turns_ms(server, app, await server.session(app), turns) for server in pair]
        for _ in range(ROUNDS)
    ]
    return _ratio(rounds)


async def _at_once(pair: Pair) -> tuple[str, str]:
    """Return the ratios of CPU and of time of turns that several callers ask for at once."""
    rounds = [[await _used_at_once(server) for server in pair] for _ in range(ROUNDS)]
    used = [[one.cpu_ms for one in each] for each in rounds]
    took = [[one.p50_ms for one in each] for each in rounds]
    return _ratio(used), _ratio(took)


async def _used_at_once(server: Server) -> Measured:
    callers = [Server(server.url) for _ in range(CALLERS)]
    for caller in callers:
        await caller.open()
    sessions = [await caller.session("said") for caller in callers]
    before, times = server.cpu_s(), []

    async def timed(caller: Server, session: str) -> None:
        start = time.perf_counter()
        await caller.run("said", session)
        times.append(time.perf_counter() - start)

    for _ in range(5):
        await asyncio.gather(*map(timed, callers, sessions))
    for caller in callers:
        caller.close()
    return Measured((server.cpu_s() - before) * 1000, statistics.median(times) * 1000)


async def _created_ms(server: Server) -> float:
    return (await measure(server, lambda: server.session("said"), 100)).cpu_ms


async def _streamed_ms(server: Server) -> float:
    session = await server.session("streamer")

    async def stream() -> None:
        answer = await server.run("streamer", session, "/run_sse")
        assert 201 == answer.count(b"data: "), answer

    return (await measure(server, stream, 5)).cpu_ms


async def _long_session(pair: Pair) -> list[list[float]]:
    """Return the CPU of a turn in each block of turns of a session, for both servers."""
    blocks: list[list[list[float]]] = [[], []]
    for _ in range(5):
        sessions = [await server.session("said") for server in pair]
        for costs in blocks:
            costs.append([])
        for _ in range(BLOCKS):
            for costs, server, session in zip(blocks, pair, sessions, strict=True):
                costs[-1].append(await _turns_ms(server, "said", session, BLOCK))
    return [[statistics.mean(block) for block in zip(*costs, strict=True)] for costs in blocks]


def _cells(python: str) -> Row:
    """Measure a warm cell of a notebook over /jupyter and over a Kernel Gateway."""
    settings = {"AGENTDOUBLE_TOKEN": TOKEN, "KG_AUTH_TOKEN": TOKEN}
    with TemporaryDirectory() as name, ExitStack() as stack:
        notebooks = []
        for words, path in ((SERVE, "/jupyter"), (GATEWAY, "")):
            url = stack.enter_context(serving(python, *words, folder=Path(name), environ=settings))
            notebooks.append(stack.enter_context(_notebook(url + path)))
        rounds = [[_cells_ms(notebook) for notebook in notebooks] for _ in range(ROUNDS)]
    return Row("a warm cell over /jupyter, beside Kernel Gateway", _ratio(rounds[1:]), "1.00")


@contextmanager
def _notebook(url: str) -> Iterator[Notebook]:
    headers = {"Authorization": f"token {TOKEN}"}
    made = httpx.post(f"{url}/api/kernels", headers=headers, json={"name": "python3"}, timeout=60)
    channels = f"{url.replace('http', 'ws', 1)}/api/kernels/{made.json()['id']}/channels"
    with connect(channels, additional_headers=headers, subprotocols=[V1], proxy=None) as socket:  # type: ignore[list-item]
        notebook = Notebook(socket)
        notebook.text("1")
        yield notebook


def _cells_ms(notebook: Notebook) -> float:
    times = []
    for _ in range(CELLS):
        start = time.perf_counter()
        notebook.text("1 + 1")
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _ratio(rounds: list[list[float]]) -> str:
    """Return the double's share of what the other server took."""
    double, real = (sum(side) for side in zip(*rounds, strict=True))
    return f"{double / real:.2f}"
