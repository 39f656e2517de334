"""What a double holds after thousands of uses: memory, descriptors, threads, processes.

    python -m tests.benchmarks.bench_long_life [--json FILE] [--times 10000] [KIND...]

Each kind of use has a double of its own, served as users do. After a warm-up that fills the
journal, it is looked at after each quarter of the uses. All that is not kept by design must be
level: the second half of the uses may add at most 2 % of memory, and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import table, uses
from tests.benchmarks.served import Served, served
from tests.benchmarks.table import Row, Section
from tests.benchmarks.uses import User

APPS = Path(__file__).with_name("lasting_apps.py")
WARM_UP, QUARTERS = 1200, 4
LOOKS, BETWEEN_S = 20, 0.5
MOST_GROWTH = 2.0  # percent
ABOUT = (
    "The double alone, as `agentdouble serve` runs it: all in memory, isolation as the machine "
    "offers it, a journal of the last 1,000 requests, logs to nowhere, one caller at a time. "
    "Memory is the RSS of the main process; descriptors, threads and child processes are "
    "counted, and growth is that over the second half of the uses. Tasks, and sessions that are "
    "not deleted, are kept by design; so is how the last 10,000 sandbox sessions ended."
)


class Held(NamedTuple):
    """What the main process of a double holds, and how many processes it has started."""

    rss_mib: float
    descriptors: int
    threads: int
    processes: int


class Kind(NamedTuple):
    """A kind of use, with an application or none; ``share`` of the times are enough for it."""

    name: str
    use: Callable[[User], None]
    app: str = ""
    service: bool = False
    kept: bool = False
    share: float = 1.0


own, hosted = partial(uses.mcp_client, path="/mcp"), partial(uses.mcp_client, path="/mcp/bench")
agent = uses.agent_session
KINDS = {
    "mcp": Kind("MCP clients that end their session", partial(own, ends=True), "tools"),
    "mcp-left": Kind("MCP clients that leave", partial(own, ends=False), "tools"),
    "mcp-modern": Kind("MCP calls without sessions", uses.mcp_call, "tools"),
    "service": Kind("clients of an MCP service", partial(hosted, ends=True), "tools", True),
    "service-left": Kind(
        "clients of an MCP service that leave", partial(hosted, ends=False), "tools", True
    ),
    "a2a": Kind("A2A tasks", uses.a2a_task, "tasks", kept=True),
    "a2a-left": Kind("A2A tasks whose caller leaves", uses.a2a_stream, "tasks", kept=True),
    "sessions": Kind("API-server sessions, deleted", partial(agent, runs=0, ends=True)),
    "sessions-kept": Kind("API-server sessions", partial(agent, runs=0, ends=False), kept=True),
    "runs": Kind("`/run` in sessions that are deleted", partial(agent, runs=1, ends=True)),
    "runs-kept": Kind("`/run` in sessions of their own", partial(agent, runs=1, ends=False), kept=True),
    "runs-left": Kind("`/run_sse` whose caller leaves", uses.agent_stream),
    "code": Kind("InvokeTool in one session", uses.code),
    "notebooks": Kind("notebooks of one kernel, one after another", uses.notebook),
    "sandboxes": Kind("sandbox sessions, destroyed", uses.sandbox, share=0.2),
}  # fmt: skip


def measure(kind: Kind, times: int) -> Iterator[Held]:
    """Use a double so often, and yield what it holds at first and after each quarter."""
    words = [f"{APPS}:{kind.app}"] if kind.app else []
    with served(*words) as double, contextlib.closing(User(double)) as user:
        user.caller.run("1", "warm")
        if kind.service:
            user.key = _service(double)
        for _ in range(int(WARM_UP * kind.share)):
            kind.use(user)
        yield _held(double)
        for _ in range(QUARTERS):
            for _ in range(times // QUARTERS):
                kind.use(user)
            yield _held(double)


def _service(double: Served) -> str:
    """Create a service whose backend is the application of the same double; return its key."""
    words = ["mcp", "create", "bench", f"{double.url}/mcp", "--url", double.url, "--json"]
    command = [sys.executable, "-m", "agentdouble", *words]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return str(json.loads(made)["mcpServers"]["bench"]["headers"]["Authorization"].split()[1])


def _held(double: Served) -> Held:
    """Return what a double holds when its counts stay: a pool may still be filling."""
    held = _seen(double)
    for _ in range(LOOKS):
        before = held
        time.sleep(BETWEEN_S)
        held = _seen(double)
        if held[1:] == before[1:]:
            break
    return held


def _seen(double: Served) -> Held:
    process = double.process
    children = process.children(recursive=True)
    memory = process.memory_info().rss / 2**20
    return Held(memory, process.num_fds(), process.num_threads(), len(children))


def rows(names: list[str], times: int) -> Iterator[Row]:
    """Measure each kind, and yield its growth over the second half of the uses."""
    for kind in (KINDS[name] for name in names):
        count = int(times * kind.share)
        seen = []
        for held in measure(kind, count):
            seen.append(held)
            print(f"{kind.name}, {len(seen) - 1}/{QUARTERS}: {held}", file=sys.stderr, flush=True)
        middle, end = seen[QUARTERS // 2], seen[-1]
        name = f"{count:,} {kind.name}"
        if kind.kept:
            size = (end.rss_mib - middle.rss_mib) / (count / 2) * 1024
            yield Row(f"{name}: memory of each", size, "KiB")
        else:
            growth = (end.rss_mib / middle.rss_mib - 1) * 100
            yield Row(f"{name}: growth of memory", growth, "%", MOST_GROWTH)
        more = sum(max(0, now - then) for then, now in zip(middle[1:], end[1:], strict=True))
        yield Row(f"{name}: further descriptors, threads, processes", more, wanted=0)


def main() -> None:
    """Print the table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--times", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = rows(options.kinds or list(KINDS), options.times)
    table.write([Section("A long life", ABOUT, chosen)], options.json)


if __name__ == "__main__":
    main()
