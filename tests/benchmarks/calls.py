"""Figures of calls and of new sessions, beside jupyter_client with a stock kernel."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client import AsyncKernelClient
from jupyter_client.manager import start_new_async_kernel

from tests.benchmarks.conftest import Caller
from tests.benchmarks.served import Served, served, timed
from tests.benchmarks.table import Row, Section

ROUNDS, CALLS = 10, 50
STARTS, STOCK_STARTS, READY = 30, 8, 4
UNTIL_READY_S = 0.3
OF_STOCK = "of jupyter_client's"
SIDES = (
    "The double is `agentdouble serve` in a process of its own. It is called over HTTP with "
    "signatures, keeps its journal, and logs to nowhere. The stock side is jupyter_client of this "
    "process with an ipykernel of its own, over ZeroMQ: no HTTP, no signatures of requests, no "
    "journal, no log, no isolation."
)
WARM = (
    f"`1 + 1` in a session that lives, one caller. {SIDES} The last line is like with like: the "
    "same jupyter_client calls a kernel of the double itself, past HTTP and the double; that "
    "kernel is isolated, and its socket is a Unix socket instead of TCP."
)
NEW = (
    f"From the request for a new session to the answer of `1 + 1`, one caller. {SIDES} A ready "
    f"kernel was forked before, one of {READY}; the stock kernel is started as a program."
)
_names = (f"s{number}" for number in itertools.count())
Act = Callable[[], object]


def sections() -> Iterator[Section]:
    """Measure doubles whose sessions are isolated, and doubles whose sessions are not."""
    yield Section("A call in a session that lives", WARM, warm_calls())
    yield Section("A new session", NEW, first_answers())


def warm_calls() -> Iterator[Row]:
    """Let all sides take turns."""
    with ExitStack() as stack:
        isolated = stack.enter_context(_calling(pool_size=0))
        open_ = stack.enter_context(_calling(pool_size=0, isolation="none"))
        raw = {name: stack.enter_context(closing(Caller(it))) for name, it in
               (("isolated", isolated), ("open", open_))}  # fmt: skip
        sides: dict[str, Act] = {
            "stock": stack.enter_context(_stock()),
            "client": lambda: isolated.platform.run_code("1 + 1", session_id="warm"),
            "client, open": lambda: open_.platform.run_code("1 + 1", session_id="warm"),
            "raw": lambda: raw["isolated"].run("1 + 1", "warm"),
            "raw, open": lambda: raw["open"].run("1 + 1", "warm"),
            "kernel": stack.enter_context(_kernel_of(isolated)),
        }
        took: dict[str, list[float]] = {name: [] for name in sides}
        cpu: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS + 1):
            for name, act in sides.items():
                took_ms, cpu_ms = timed(act, CALLS)
                took[name].append(took_ms)
                cpu[name].append(cpu_ms)
    times = {name: statistics.median(rounds[1:]) for name, rounds in took.items()}  # 1: warm-up
    yield Row("doublecheck's client, isolated", times["client"], "ms")
    yield Row("the same: CPU of all processes", statistics.median(cpu["client"][1:]), "ms")
    yield Row("http.client, isolated", times["raw"], "ms")
    yield Row("jupyter_client, stock kernel", times["stock"], "ms")
    yield Row("doublecheck's client, isolated", _ratio(times, "client"), OF_STOCK, 1.10)
    yield Row("doublecheck's client, not isolated", _ratio(times, "client, open"), OF_STOCK)
    yield Row("http.client, isolated", _ratio(times, "raw"), OF_STOCK)
    yield Row("http.client, not isolated", _ratio(times, "raw, open"), OF_STOCK)
    yield Row("jupyter_client, isolated kernel", _ratio(times, "kernel"), OF_STOCK)


def first_answers() -> Iterator[Row]:
    """Let the doubles and the stock kernel take turns."""
    with ExitStack() as stack:
        doubles = {
            f"{isolated}, {ready}": stack.enter_context(
                _calling(pool_size=pool_size, isolation=isolation)
            )
            for isolated, isolation in (("isolated", "auto"), ("not isolated", "none"))
            for ready, pool_size in (("forked on request", 0), ("a ready kernel", READY))
        }
        took: dict[str, list[float]] = {name: [] for name in (*doubles, "stock")}
        for number in range(STARTS):
            for name, it in doubles.items():
                took[name].append(timed(partial(_new, it), 1)[0])
                time.sleep(UNTIL_READY_S)  # another kernel is ready again
            if number < STOCK_STARTS:
                took["stock"].append(timed(lambda: asyncio.run(_start_stock()), 1)[0])
    times = {name: statistics.median(each[1:]) for name, each in took.items()}
    for name in doubles:
        wanted = 30 if name == "isolated, forked on request" else None
        yield Row(name, times[name], "ms", wanted)
    yield Row("jupyter_client, stock kernel", times["stock"], "ms")
    for name in doubles:
        yield Row(name, _ratio(times, name), OF_STOCK)


@contextmanager
def _calling(**settings: Any) -> Iterator[Served]:
    """Serve a double that has answered a call."""
    with served(**settings) as it:
        it.platform.run_code("1", session_id="warm")
        yield it


def _new(it: Served) -> None:
    it.platform.run_code("1 + 1", session_id=next(_names))


async def _start_stock() -> None:
    manager, client = await start_new_async_kernel(stderr=subprocess.DEVNULL)
    await client.execute_interactive("1 + 1", output_hook=lambda _: None)
    client.stop_channels()
    await manager.shutdown_kernel(now=True)


@contextmanager
def _stock() -> Iterator[Act]:
    """Start a stock kernel and yield a call of it."""
    with closing(asyncio.new_event_loop()) as loop:
        manager, client = loop.run_until_complete(start_new_async_kernel(stderr=subprocess.DEVNULL))
        yield _executing(loop, client)
        client.stop_channels()
        loop.run_until_complete(manager.shutdown_kernel(now=True))


@contextmanager
def _kernel_of(it: Served) -> Iterator[Act]:
    """Connect jupyter_client to the kernel of a double's only session, and yield a call of it."""
    lock = next(file.path for file in it.process.open_files() if Path(file.path).name == "lock")
    [file] = Path(lock).parent.rglob("kernel.json")
    with closing(asyncio.new_event_loop()) as loop:
        client = AsyncKernelClient(connection_file=str(file))
        client.load_connection_file()
        client.start_channels()
        loop.run_until_complete(client.wait_for_ready(timeout=60))
        yield _executing(loop, client)
        client.stop_channels()


def _executing(loop: asyncio.AbstractEventLoop, client: AsyncKernelClient) -> Act:
    def execute() -> None:
        loop.run_until_complete(client.execute_interactive("1 + 1", output_hook=lambda _: None))

    return execute


def _ratio(times: dict[str, float], name: str) -> float:
    return times[name] / times["stock"]
