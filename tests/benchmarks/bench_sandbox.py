"""How fast sessions start, answer and end, and what they cost, beside the alternatives.

All alternatives are doubles of this process with a journal and no ready kernels, called over HTTP
with signatures. Forked kernels are isolated as the machine offers it, except in one double; those
of the stock provisioner never are.

Run: python -m pytest tests/benchmarks -o python_files='bench_*.py' \
    -o python_functions='bench_*'
"""

from __future__ import annotations

import os
import select
import statistics
from typing import Any

import psutil
import pytest

from tests.agentdouble.calling import sessions_of
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
    kernels = sessions_of(caller.double).placement.kernels
    while len(kernels._ready) < caller.double.settings.pool_size:
        select.select([], [], [], 0.005)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_fork(benchmark: Any, forking: Caller) -> None:
    first_answer(benchmark, forking)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_fork_not_isolated(benchmark: Any, forking_openly: Caller) -> None:
    first_answer(benchmark, forking_openly)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_stock_provisioner(benchmark: Any, local: Caller) -> None:
    first_answer(benchmark, local)


@pytest.mark.benchmark(group="new session, first answer over HTTP")
def bench_first_answer_javascript(benchmark: Any, forking: Caller) -> None:
    first_answer(benchmark, forking, "javascript")


@pytest.mark.benchmark(group="warm call")
def bench_warm_call_javascript(benchmark: Any, forking: Caller) -> None:
    forking.reconnect()
    call = lambda: forking.run("1+1", "warm-up", "javascript")  # noqa: E731 (one of a family)
    benchmark.pedantic(call, rounds=500, warmup_rounds=20)


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
