"""The cost of starting a Python session: first answer, concurrent starts, memory.

Run: python -m tests.benchmarks.bench_starts [--base /path/to/emulator]

``--base`` is the folder ``emulator`` of another revision, for example of a git worktree; its
sessions are measured in turns with ours. Each double has a process of its own, keeps all in memory,
has no ready kernels, and logs no requests. All is measured without isolation, and with what the
machine offers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from agentdouble import Emulator
from tests.benchmarks.conftest import Caller, fresh, pss_mib

ROUNDS = 25
AT_ONCE = 40
BURSTS = 5


class Driver:
    """A double in this process, controlled by lines on its standard input."""

    def __init__(self, double: Emulator) -> None:
        self._double = double
        self._caller = Caller(double)
        self._caller.run("1+1", "warm-up")

    def first(self) -> tuple[float, float]:
        """Return the time of a first answer and the CPU of all kernels meanwhile, in ms."""
        used, start = _cpu_s(), time.perf_counter()
        session = fresh()
        self._caller.run("1+1", session)
        took = time.perf_counter() - start
        cpu = _cpu_s() - used
        self._destroy()
        return took * 1000, cpu * 1000

    def burst(self) -> tuple[float, float]:
        """Return the concurrent starts a second, and the MiB per session."""
        callers = [Caller(self._double) for _ in range(AT_ONCE)]
        start = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda caller: caller.run("1+1", fresh()), callers))
        took = time.perf_counter() - start
        sizes = [pss_mib(process.pid) for process in _kernels()]
        for caller in callers:
            caller.close()
        self._destroy()
        return AT_ONCE / took, statistics.median(sizes)

    def _destroy(self) -> None:
        self._caller.reconnect()
        for session in self._caller.sessions():
            if session["UserSessionId"] != "warm-up":
                self._caller.destroy(session["SessionId"])
        while len(_kernels()) > 1:
            time.sleep(0.01)


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _kernels() -> list[psutil.Process]:
    """Return the session processes: they have threads, unlike the fork server and its helpers."""
    sessions = []
    for process in _descendants():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.num_threads() > 1:
                sessions.append(process)
    return sessions


def _cpu_s() -> float:
    """Return the CPU time of all descendants, as the scheduler counts it (ns)."""
    used = 0
    for process in _descendants():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                used += int((thread / "schedstat").read_text().split()[0])
    return used / 1e9


def drive(settings: dict[str, Any]) -> None:
    """Serve the commands on standard input."""
    with Emulator(pool_size=0, max_instances=400, **settings) as double:
        driver = Driver(double)
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(getattr(driver, line.strip())()), flush=True)


@contextlib.contextmanager
def driven(base: str | None, isolation: str) -> Iterator[Any]:
    """Yield a function that calls a double's driver."""
    environment = dict(os.environ) if base is None else {**os.environ, "PYTHONPATH": base}
    settings = json.dumps({"isolation": isolation})
    command = [sys.executable, "-m", __spec__.name, "--drive", settings]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()

        def ask(path: str) -> Any:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def compare(bases: dict[str, str | None], isolation: str) -> None:
    """Measure the doubles in alternation."""
    with contextlib.ExitStack() as stack:
        asks = {name: stack.enter_context(driven(base, isolation)) for name, base in bases.items()}
        firsts: dict[str, list[Any]] = {name: [] for name in asks}
        bursts: dict[str, list[Any]] = {name: [] for name in asks}
        for _ in range(ROUNDS):
            for name, ask in asks.items():
                firsts[name].append(ask("first"))
        for _ in range(BURSTS):
            for name, ask in asks.items():
                bursts[name].append(ask("burst"))
        for name in asks:
            took, cpu = (statistics.median(column) for column in zip(*firsts[name], strict=True))
            rate, pss = (statistics.median(column) for column in zip(*bursts[name], strict=True))
            print(
                f"isolation {isolation}, {name}: first answer {took:.1f} ms, CPU {cpu:.1f} ms; "
                f"{AT_ONCE} at once: {rate:.0f} a second, PSS {pss:.1f} MiB each",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    parser.add_argument("--drive", type=json.loads)
    arguments = parser.parse_args()
    if arguments.drive is not None:
        drive(arguments.drive)
        return
    bases = {"ours": None} if arguments.base is None else {"the base": arguments.base, "ours": None}
    for isolation in ("none", "auto"):
        compare(bases, isolation)


if __name__ == "__main__":
    main()
