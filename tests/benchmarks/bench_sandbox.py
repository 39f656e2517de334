"""How fast sessions start, answer and end, and what they cost, beside the alternatives.

Run: python -m pytest tests/benchmarks -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import asyncio
import os
import select
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from jupyter_client.manager import start_new_async_kernel

from tests.agentdouble.calling import instances_of
from tests.benchmarks.conftest import Caller, fresh, pss_mib

ROUNDS = 20


def first_answer(benchmark: Any, caller: Caller, language: str = "python3") -> None:
    caller.reconnect()

    def setup() -> tuple[tuple[str], dict[str, Any]]:
        for session in caller.sessions():  # as many sessions at the end as at the start
            if session["UserSessionId"] != "warm-up":
                _destroy(caller, session["SessionId"])
        _wait_until_filled(caller)
        return (fresh(),), {}

    benchmark.pedantic(
        lambda session: caller.run("1+1", session, language), setup=setup, rounds=ROUNDS
    )


def _destroy(caller: Caller, session_id: str) -> None:
    caller.destroy(session_id)


def _wait_until_filled(caller: Caller) -> None:
    kernels = instances_of(caller.double).places._kernels
    while len(kernels._ready) < caller.double.settings.pool_size:
        select.select([], [], [], 0.005)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_fork(benchmark: Any, forking: Caller) -> None:
    first_answer(benchmark, forking)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_pool(benchmark: Any, pooling: Caller) -> None:
    first_answer(benchmark, pooling)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_stock_provisioner(benchmark: Any, local: Caller) -> None:
    first_answer(benchmark, local)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_stock_jupyter_client(benchmark: Any) -> None:
    """Use jupyter_client alone, as in its documentation, without HTTP."""

    async def start_and_run() -> None:
        manager, client = await start_new_async_kernel()
        await client.execute_interactive("1+1", output_hook=lambda _: None)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)

    benchmark.pedantic(lambda: asyncio.run(start_and_run()), rounds=5)


@pytest.mark.benchmark(group="warm call")
def bench_warm_call(benchmark: Any, forking: Caller) -> None:
    forking.reconnect()
    benchmark.pedantic(lambda: forking.run("1+1", "warm-up"), rounds=500, warmup_rounds=20)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_javascript(benchmark: Any, forking: Caller) -> None:
    first_answer(benchmark, forking, "javascript")


@pytest.mark.benchmark(group="warm call")
def bench_warm_call_javascript(benchmark: Any, forking: Caller) -> None:
    forking.reconnect()
    call = lambda: forking.run("1+1", "warm-up", "javascript")  # noqa: E731 (one of a family)
    benchmark.pedantic(call, rounds=500, warmup_rounds=20)


@pytest.mark.benchmark(group="warm call")
def bench_warm_call_raw_client(benchmark: Any) -> None:
    """Measure the floor: jupyter_client on a stock kernel, without HTTP."""
    loop = asyncio.new_event_loop()
    manager, client = loop.run_until_complete(start_new_async_kernel())

    def call() -> None:
        loop.run_until_complete(client.execute_interactive("1+1", output_hook=lambda _: None))

    benchmark.pedantic(call, rounds=300, warmup_rounds=20)
    client.stop_channels()
    loop.run_until_complete(manager.shutdown_kernel(now=True))
    loop.close()


def bench_starts_a_second(forking: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    """Start sessions two at a time; then call 100 live ones and measure their memory."""
    names = [fresh() for _ in range(100)]
    callers = [Caller(forking.double) for _ in range(2)]
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        for caller, half in zip(callers, (names[:50], names[50:]), strict=True):
            pool.submit(lambda c=caller, h=half: [c.run("1+1", name) for name in h])
    rate = len(names) / (time.perf_counter() - started)
    for caller in callers:
        caller.close()
    forking.reconnect()
    pids = [pid for s in forking.sessions() if s["UserSessionId"] in names for pid in s["pids"]]
    memory = [pss_mib(pid) for pid in pids]
    started = time.perf_counter()
    for name in names:
        forking.run("1+1", name)
    all_answer_s = time.perf_counter() - started
    with capsys.disabled():
        print(
            f"\nstarts a second: {rate:.0f}; 100 alive: PSS {statistics.median(memory):.1f} MiB "
            f"each, {sum(memory):.0f} in all, answering one after another in {all_answer_s:.2f} s"
        )


def bench_javascript_memory(forking: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    """Measure the kernel and engine of twenty live JavaScript sessions."""
    names = [fresh() for _ in range(20)]
    forking.reconnect()
    for name in names:
        forking.run("1+1", name, "javascript")
    kernels = [pid for s in forking.sessions() if s["UserSessionId"] in names for pid in s["pids"]]
    engines = [child.pid for pid in kernels for child in psutil.Process(pid).children()]
    double_mib, denos = ([pss_mib(pid) for pid in pids] for pids in (kernels, engines))
    with capsys.disabled():
        print(
            f"\n20 JavaScript sessions alive: PSS {statistics.median(double_mib):.1f} MiB each kernel, "
            f"{statistics.median(denos):.1f} MiB each engine"
        )


@pytest.mark.benchmark(group="end")
def bench_death_is_noticed(benchmark: Any, forking: Caller) -> None:
    forking.reconnect()

    def setup() -> tuple[tuple[str], dict[str, Any]]:
        name = fresh()
        forking.run("import os", name)
        return (name,), {}

    def die(name: str) -> None:
        with pytest.raises(AssertionError, match="exited with code 3"):
            forking.run("os._exit(3)", name)

    benchmark.pedantic(die, setup=setup, rounds=ROUNDS)


@pytest.mark.benchmark(group="end")
def bench_kill_to_gone(benchmark: Any, forking: Caller) -> None:
    forking.reconnect()

    def setup() -> tuple[tuple[str, int], dict[str, Any]]:
        name = fresh()
        forking.run("import subprocess; p = subprocess.Popen(['sleep', '1000'])", name)
        session = next(s for s in forking.sessions() if s["UserSessionId"] == name)
        return (session["SessionId"], os.pidfd_open(session["pids"][0])), {}

    def kill(session_id: str, pidfd: int) -> None:
        _destroy(forking, session_id)
        select.select([pidfd], [], [])
        os.close(pidfd)

    benchmark.pedantic(kill, setup=setup, rounds=ROUNDS)
