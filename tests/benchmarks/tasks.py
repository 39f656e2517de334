"""Figures of A2A: a message until its completed task, beside the same executor on the bare SDK."""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.benchmarks.bench_api_server import Server
from tests.benchmarks.table import Row, Section
from tests.real_targets.processes import serving

ROUNDS, CALLS = 12, 40
APPS = Path(__file__).with_name("a2a_apps.py")
SERVE = ("-m", "agentdouble", "serve", "--no-console", "--quiet", "--port", "{port}", f"{APPS}:app")
HEADERS = {"Content-Type": "application/json", "A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": MESSAGE}}
ABOUT = (
    "A message until its completed task, one caller with one connection. The same executor runs "
    "in `agentdouble serve` and on the bare A2A SDK under uvicorn, one process each, without keys "
    "and isolation. Neither logs requests; the double keeps its journal. CPU is that of the "
    "process. Both keep tasks in memory, or both in a SQLite file: the double with `--state`, the "
    "SDK in its `DatabaseTaskStore`."
)
# Where both keep tasks, and the options of the double and of the bare SDK.
STORES = {
    "memory": ((), ()),
    "a file": (("--state", "sqlite:///state.db"), ("sqlite+aiosqlite:///tasks.db",)),
}


class Caller(Server):
    """Sends messages over one connection."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def took_ms(self) -> float:
        """Send a message, and return the time until its completed task."""
        start = time.perf_counter()
        self._connection.request("POST", "/", json.dumps(CALL), HEADERS)
        answer = self._connection.getresponse().read()
        took = time.perf_counter() - start
        assert b"TASK_STATE_COMPLETED" in answer, answer
        return took * 1e3

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def sections() -> Iterator[Section]:
    """Measure both with tasks in memory, and both with tasks in a file."""
    yield Section("A2A", ABOUT, rows())


def rows() -> Iterator[Row]:
    """Let the double and the bare SDK take turns."""
    for where, (ours, bare) in STORES.items():
        with TemporaryDirectory() as name, ExitStack() as stack:
            callers = [
                stack.enter_context(closing(Caller(stack.enter_context(each))))
                for each in (
                    serving(sys.executable, *SERVE, *ours, folder=Path(name)),
                    serving(sys.executable, str(APPS), "{port}", *bare, folder=Path(name)),
                )
            ]
            took: list[list[float]] = [[], []]
            used_s = [0.0, 0.0]
            for number in range(ROUNDS + 1):
                for side, caller in enumerate(callers):
                    before_s = caller.cpu_s()
                    times = [caller.took_ms() for _ in range(CALLS)]
                    if number:  # the first warms up
                        took[side] += times
                        used_s[side] += caller.cpu_s() - before_s
        medians = [statistics.median(times) for times in took]
        yield Row(f"tasks in {where}: time, the double", medians[0], "ms")
        yield Row(f"tasks in {where}: time", medians[0] / medians[1], "of the SDK's", 1.15)
        yield Row(f"tasks in {where}: CPU", used_s[0] / used_s[1], "of the SDK's")
