"""What a console costs its double: a request with nobody listening and with a page, start, memory.

Run: python -m tests.benchmarks.bench_console_cost [--base /path/to/emulator]

``--base`` is the folder ``emulator`` of another revision, for example of a git worktree; requests
to its double are measured in turns with those to ours. Each double has a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psutil

ROUNDS = 20
REQUESTS = 500  # in a round
STARTS = 7
SERVER = """
import sys, time
from agentdouble import Emulator
Emulator(pool_size=0).stop()  # so that what all doubles import is there
start = time.perf_counter()
double = Emulator(pool_size=0, **eval(sys.argv[1])).start()
print(double.url, getattr(double, "console_url", None), time.perf_counter() - start, flush=True)
sys.stdin.read()
double.stop()
"""


@dataclass
class Server:
    """A double in a process of its own, asked over one connection that is kept."""

    process: psutil.Process
    url: str
    console: str
    started_s: float
    took_us: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def measure(self) -> None:
        """Ask for a round; note the median of a request, and the server's CPU a request."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc)
        took, used = [], sum(self.process.cpu_times()[:2])
        for _ in range(REQUESTS):
            start = time.perf_counter()
            connection.request("GET", "/list-apps")
            connection.getresponse().read()
            took.append(time.perf_counter() - start)
        self.took_us.append(statistics.median(took) * 1e6)
        self.cpu_us.append((sum(self.process.cpu_times()[:2]) - used) / REQUESTS * 1e6)
        connection.close()

    def uss_mib(self) -> float:
        """Return the memory that only this process has."""
        uss: int = self.process.memory_full_info().uss
        return uss / 2**20


@contextlib.contextmanager
def server(settings: str = "{}", base: str | None = None) -> Iterator[Server]:
    environment = dict(os.environ) if base is None else {**os.environ, "PYTHONPATH": base}
    command = [sys.executable, "-c", SERVER, settings]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        url, console, started_s = process.stdout.readline().split()
        yield Server(psutil.Process(process.pid), url, console, float(started_s))
        process.stdin.close()


@contextlib.contextmanager
def listening(console: str) -> Iterator[None]:
    """Read the events of a double as a page does."""
    address, _, token = console.partition("/#token=")
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    reading = threading.Thread(target=lambda: [None for _ in answer])
    reading.start()
    yield
    reading.join()  # the double has stopped by then


def requests(base: str | None) -> None:
    """Measure a request to doubles of all kinds in turns."""
    with contextlib.ExitStack() as stack:
        watched = stack.enter_context(server("{'console': True}"))
        made = {
            "ours": stack.enter_context(server()),
            "a console that nobody opens": stack.enter_context(server("{'console': True}")),
        }
        if base is not None:
            made = {"the base": stack.enter_context(server(base=base)), **made}
        made["a page"] = watched
        stack.callback(_read_to_the_end(watched))
        for _ in range(ROUNDS):
            for one in made.values():
                one.measure()
        first = next(iter(made.values()))
        for name, one in made.items():
            took, cpu = statistics.median(one.took_us), statistics.median(one.cpu_us)
            more = [a / b - 1 for a, b in zip(one.took_us, first.took_us, strict=True)]
            print(
                f"a request to {name}: {took:.0f} µs, {cpu:.0f} µs of CPU, "
                f"{statistics.median(more):+.1%} of a round beside the first"
            )


def _read_to_the_end(watched: Server) -> Callable[[], None]:
    """Listen to a double; return what ends it and the listening."""
    stack = contextlib.ExitStack()
    stack.enter_context(listening(watched.console))

    def end() -> None:
        watched.process.terminate()
        stack.close()

    return end


def starts() -> None:
    """Measure doubles with and without a console, in turns."""
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(STARTS):
        for has_console, measured in found.items():
            with server(f"{{'console': {has_console}}}") as one:
                measured.append((one.started_s * 1000, one.uss_mib()))
    for place, unit in enumerate(("ms of start", "MiB of memory")):
        without, having = (
            statistics.median(one[place] for one in measured) for measured in found.values()
        )
        print(f"{unit}: {without:.1f} without a console, {having:.1f} with one that nobody opens")


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--base", help="the folder emulator of another revision")
    chosen = options.parse_args()
    starts()
    requests(chosen.base)


if __name__ == "__main__":
    main()
