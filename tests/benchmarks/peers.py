"""Figures of API-server mode beside ``adk api_server``, with the same place for sessions.

Each server is a process of its own, in the same environment with the same libraries. The two take
turns, so that a load on the machine meets both. The agents are Google's ADK's, and call no model.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sqlalchemy import make_url

from tests import postgresql
from tests.benchmarks.bench_api_server import Measured, Server, measure
from tests.benchmarks.table import Row, Section
from tests.real_clients.environments import Python
from tests.real_targets.processes import serving

ROOT = Path(__file__).parents[2]
AGENTS = Path(__file__).with_name("adk_agents")


class Peers(Python):
    """The environment of all servers that are measured."""

    def made(self, cache: Path) -> str:
        """Make it below a folder unless it exists, and return its interpreter."""
        self.make(cache)
        return self.python(cache)


PEERS = Peers(
    "google-adk",
    (
        "google-adk[a2a]>=2.13",
        "jupyter-kernel-gateway>=3,<4",
        "-e",
        f"{ROOT}[emulator,postgres]",
    ),
)
SERVE = ("-m", "agentdouble", "serve", "--port", "{port}", "--no-console")
API_SERVER = ("-m", "google.adk.cli", "api_server", "--host", "127.0.0.1", "--port", "{port}")
ROUNDS, TURNS, STREAMS, CALLERS, CREATED = 31, 20, 31, 16, 100
BLOCK, BLOCKS = 40, 4  # turns of a long session
Pair = tuple[Server, Server]


class Storage(NamedTuple):
    """Where both keep sessions: in words, each server's options, and the goals of some rows."""

    name: str
    about: str
    double: Sequence[str]
    real: Sequence[str]
    create: float
    run: float


IN_MEMORY = ("--session_service_uri", "memory://", "--artifact_service_uri", "memory://")
MEMORY = Storage(
    "memory", "Both keep sessions in memory (for adk with `memory://`).", (), IN_MEMORY, 0.54, 0.70
)
FILE = Storage(
    "a SQLite file",
    "Both keep sessions in a SQLite file, and commit each change before they answer: the double "
    "with `--state sqlite:///state.db`, adk by default. The double reads sessions from memory, adk "
    "from the file. Threads that write count as their server.",
    ("--state", "sqlite:///state.db"),
    (),
    0.60,
    0.70,
)
SIDES = (
    "`agentdouble serve` beside `adk api_server`, one process each, with the same ADK agents in "
    "it, without keys, over HTTP with persistent connections. Both write a line for each request "
    "to a file. The double also keeps its journal and runs agents on a thread of their "
    "own. One caller and new sessions, unless a line says otherwise; both answer 15 turns first. "
    "CPU is that of the process that listens."
)
OF_REAL = "of adk's"


def sections(storage: str, cache: Path) -> Iterator[Section]:
    """Measure with sessions in ``memory``, a ``file`` or ``postgresql``."""
    python = PEERS.made(cache)
    with ExitStack() as stack:
        kept = {"memory": MEMORY, "file": FILE}.get(storage) or stack.enter_context(_postgresql())
        about = f"{SIDES} {kept.about} {PEERS.package} {PEERS.version(cache)}."
        yield Section(f"API-server mode, sessions in {kept.name}", about, _rows(python, kept))


def _rows(python: str, kept: Storage) -> Iterator[Row]:
    with ExitStack() as stack:
        double = stack.enter_context(_agents(python, *SERVE, *kept.double, "--agents", "."))
        real = stack.enter_context(_agents(python, *API_SERVER, *kept.real, "."))
        yield from asyncio.run(_api_server_mode(kept, double, real))


@contextmanager
def _postgresql() -> Iterator[Storage]:
    """Start a PostgreSQL server with a database for each of the two."""
    folder = postgresql.programs()
    if folder is None:
        raise SystemExit(postgresql.MISSING)
    with postgresql.running(folder) as url:
        own = make_url(url)
        real = own.set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)
        about = (
            "Both keep sessions in the same PostgreSQL server, each in tables of its own, through "
            "asyncpg, and commit each change before they answer: the double with `--state "
            "postgresql://...`, adk with `--session_service_uri postgresql+asyncpg://...`. The "
            "database is on this machine, without fsync; its CPU is not counted. The double reads "
            "sessions from memory, adk from the database."
        )
        artifacts = ("--artifact_service_uri", "memory://")
        options = ("--session_service_uri", real, *artifacts)
        yield Storage("PostgreSQL", about, ("--state", url), options, 0.60, 0.70)


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


async def _api_server_mode(kept: Storage, *urls: str) -> list[Row]:
    async with _connected(*urls) as pair:
        created = [[await _created_ms(server) for server in pair] for _ in range(ROUNDS)]
        rows = [_beside("create a session: CPU", created, kept.create)]
        for app in ("said", "llm"):
            used = await _turns(pair, app)
            rows.append(_beside(f"`/run` of an ADK agent ({app}): CPU", used, kept.run))
        rows += await _at_once(pair, kept)
        streamed = [[await _streamed_ms(server) for server in pair] for _ in range(STREAMS)]
        rows.append(_beside("a stream of 200 events: CPU", streamed, 0.45))
        if kept is MEMORY:
            rows += await _aged(pair)
    return rows


def _beside(name: str, rounds: list[list[float]], wanted: float | None) -> Row:
    return Row(name, ratio(rounds), OF_REAL, wanted)


async def _aged(pair: Pair) -> list[Row]:
    """Return what long sessions cost, and the memory after all of it."""
    double, real = await _long_session(pair)
    turns = BLOCK * BLOCKS
    main, trees = zip(*((server.rss_mib(), server.tree_mib()) for server in pair), strict=True)
    return [
        Row(f"a turn after {turns}: CPU", double[-1] / real[-1], OF_REAL, 0.22),
        Row(f"the last turns of {turns} beside the first: CPU, the double", double[-1] / double[0], "times", 1.2),
        Row(f"the last turns of {turns} beside the first: CPU, adk", real[-1] / real[0], "times"),
        Row("memory afterwards of the main process (RSS), the double", main[0], "MiB", 120),
        Row("memory afterwards of the main process (RSS), adk", main[1], "MiB"),
        Row("memory of all its processes (PSS), the double with two ready kernels", trees[0], "MiB"),
        Row("memory of all its processes (PSS), adk", trees[1], "MiB"),
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


async def _turns(pair: Pair, app: str) -> list[list[float]]:
    """Return the CPU of turns in new sessions, for both servers in each round."""
    return [
        [await _turns_ms(server, app, await server.session(app), TURNS) for server in pair]
        for _ in range(ROUNDS)
    ]


async def _at_once(pair: Pair, kept: Storage) -> list[Row]:
    """Return what sessions and turns cost that several callers ask for at once."""
    rounds = [[await _used_at_once(server) for server in pair] for _ in range(ROUNDS)]
    rows = []
    for number, (name, wanted) in enumerate(
        (("create a session", kept.create), ("`/run` (said)", kept.run))
    ):
        used = [[each[number].cpu_ms for each in pair] for pair in rounds]
        took = [[each[number].p50_ms for each in pair] for pair in rounds]
        rows += [
            _beside(f"{name}, {CALLERS} callers at once: CPU", used, wanted),
            _beside(f"{name}, {CALLERS} callers at once: time (p50)", took, 1.0),
        ]
    return rows


async def _used_at_once(server: Server) -> list[Measured]:
    """Return what sessions and turns cost that several callers with new sessions ask for."""
    callers = [Server(server.url) for _ in range(CALLERS)]
    for caller in callers:
        await caller.open()
    created = await _measured(server, [lambda it=it: it.session("said") for it in callers])
    sessions = [await caller.session("said") for caller in callers]
    turns = [
        lambda it=it, id_=id_: it.run("said", id_)
        for it, id_ in zip(callers, sessions, strict=True)
    ]
    ran = await _measured(server, turns)
    for caller in callers:
        caller.close()
    return [created, ran]


async def _measured(server: Server, calls: Sequence[Callable[[], Awaitable[object]]]) -> Measured:
    """Repeat calls, all at once, and return the CPU of all together, and the time of one."""
    before, times = server.cpu_s(), []

    async def timed(call: Callable[[], Awaitable[object]]) -> None:
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)

    for _ in range(5):
        await asyncio.gather(*map(timed, calls))
    return Measured((server.cpu_s() - before) * 1000, statistics.median(times) * 1000)


async def _created_ms(server: Server) -> float:
    return (await measure(server, lambda: server.session("said"), CREATED)).cpu_ms


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


def ratio(rounds: Iterable[Sequence[float]]) -> float:
    """Return the median over rounds of the double's share of what the other server took."""
    return statistics.median(double / real for double, real in rounds)
