"""What limits a front with 100 nodes and 100,000 sessions: measured inputs, and a simulation.

    python -m tests.benchmarks.simulate_nodes

It measures the front's processor time for a call, a new session and the watch of a node, with real
nodes on this machine: in memory, isolated as the machine offers it, with a journal, one caller that
signs requests over HTTP. It makes 100,000 sessions in the front's real tables, with nodes that exist
only there. Then it simulates the front as one processor that handles random arrivals in turn. What
that hides: networks, the nodes' own load, a database, and that client and front share two cores
here.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import NamedTuple

import psutil

from agentdouble import Emulator, __version__
from agentdouble.core.clock import Clock
from agentdouble.sandbox.nodes.engine import Joined
from agentdouble.sandbox.nodes.node import Node
from agentdouble.sandbox.nodes.node_placement import NodePlacement
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings
from tests.benchmarks.bench_nodes import cpu_s
from tests.benchmarks.conftest import Caller, fresh

NODES, SESSIONS, LIFE_S = 100, 100_000, 1800
CALLS, STARTS, WATCHED_S = 400, 60, 10.0
SIMULATED_S, LONGEST_WAIT_S = 120.0, 0.1
EVERY_S = (10, 60, 600)  # a call of each session


class Costs(NamedTuple):
    """The front's processor time in seconds."""

    call: float
    start: float
    watch: float  # of a node, in a second


def measured() -> Costs:
    """Return what calls cost a front whose nodes are on this machine."""
    with Emulator(nodes="local://3") as front:
        caller = Caller(front)
        caller.run("1", "warm")
        calls_s = cpu_s(front)
        for _ in range(CALLS):
            caller.run("1", "warm")
        starts_s = cpu_s(front)
        for _ in range(STARTS):
            caller.run("1", fresh())
        watch_s = cpu_s(front)
        time.sleep(WATCHED_S)
        end_s = cpu_s(front)
        caller.close()
    call_s, start_s = (starts_s - calls_s) / CALLS, (watch_s - starts_s) / STARTS
    return Costs(call_s, start_s, (end_s - watch_s) / WATCHED_S / 3)


async def placed() -> tuple[list[float], float]:
    """Return the seconds of each creation, and the bytes of a session."""
    settings = Settings(nodes="ray://127.0.0.1:9")  # the engine is not started
    placement = NodePlacement(settings, settings.chosen(), __version__)
    for number in range(NODES):
        joined = Joined(f"node-{number}", "http://127.0.0.1:9", __version__, 2 * SESSIONS // NODES)
        node = placement.nodes[joined.name] = Node(joined, "", settings.chosen(), 5)
        node.state = "open"
    sessions = SandboxSessions(Clock(), settings, placement=placement)
    creations_s, process = [], psutil.Process()
    before = process.memory_info().rss
    for number in range(SESSIONS):
        began_s = time.perf_counter()
        await sessions.get_or_create(settings.tool_id, f"s{number}")
        creations_s.append(time.perf_counter() - began_s)
    grown = process.memory_info().rss - before
    sizes = [len(node.sessions) for node in placement.nodes.values()]
    print(f"sessions on a node: {min(sizes)} to {max(sizes)}")
    await placement.close()
    return creations_s, grown / SESSIONS


def waits_s(costs: Costs, sessions: int, every_s: float, seed: int = 1) -> float:
    """Return how long 99 of 100 requests wait at most for the front, in a simulated time."""
    chance = random.Random(seed)
    calls, starts = sessions / every_s, sessions / LIFE_S
    speed = 1 - NODES * costs.watch  # what the watches leave of the processor
    now_s = free_s = 0.0
    waits = []
    while now_s < SIMULATED_S:
        now_s += chance.expovariate(calls + starts)
        waits.append(max(0.0, free_s - now_s))
        is_call = chance.random() < calls / (calls + starts)
        free_s = max(now_s, free_s) + (costs.call if is_call else costs.start) / speed
    return statistics.quantiles(waits, n=100)[-1]


def main() -> None:
    creations_s, size = asyncio.run(placed())
    for part_s in (creations_s[:1000], creations_s[-1000:]):
        print(f"creation, first and last: {statistics.median(part_s) * 1e6:.0f} us")
    print(f"memory of the front: {size / 1024:.1f} KiB a session")
    costs = measured()
    print(f"front: call {costs.call * 1e3:.2f} ms, start {costs.start * 1e3:.2f} ms")
    print(f"watch of {NODES} nodes: {costs.watch * NODES:.1%} of a processor")
    for every_s in EVERY_S:
        load = SESSIONS / every_s * costs.call + SESSIONS / LIFE_S * costs.start
        steps = range(1000, 10 * SESSIONS, 1000)
        most = next(n for n in steps if waits_s(costs, n, every_s) > LONGEST_WAIT_S) - 1000
        print(
            f"a call every {every_s} s: {SESSIONS} sessions need {load + NODES * costs.watch:.1f} "
            f"processors; one front holds {most}"
        )


if __name__ == "__main__":
    main()
