"""Measures what instances use, regularly and on request; ends those that use too much memory.

An instance is ended when a measurement shows it over its memory limit, so it can exceed the limit
for a moment. Memory is measured, not limited by the system. A limit of the address space would
refuse memory that programs merely reserve (threads, engines with a heap of their own), and would
apply to each child separately. The limit here applies to all processes of an instance together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentdouble.processes import usage
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.threads import run_in_thread

_REST = 20  # the pause after a look, in multiples of its duration
INTERVAL_S = 0.25
_SELDOM = 8  # if nothing is limited, only every eighth look is taken
_MIB = 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Used:
    """What an instance uses: resident memory (bytes), processes, processor time (seconds).

    ``cpu_s`` is the time of the living processes, ``spent_s`` the time since the last look.
    """

    memory: int = 0
    processes: int = 0
    cpu_s: float = 0.0
    spent_s: float = 0.0


@dataclass(frozen=True)
class Tree:
    """An instance's first process, and the memory limit of its processes, if there is one."""

    pid: int
    memory_limit: int | None = None


class Sampler:
    """Measures process trees again and again."""

    def __init__(self) -> None:
        self._took_s = 0.0
        self._busy: dict[Tree, dict[int, float]] = {}

    def look(self, trees: Mapping[str, Tree]) -> Mapping[str, Used]:
        """Return what each instance uses, by name; block while it is read."""
        began = time.perf_counter()
        table = usage.processes() if trees else {}
        for tree in self._busy.keys() - {*trees.values()}:
            del self._busy[tree]
        used = {name: self._look_at(tree, table) for name, tree in trees.items()}
        self._took_s = time.perf_counter() - began
        return used

    def rest_s(self, interval_s: float) -> float:
        """Return how long to wait until the next look, so that measuring costs little."""
        return max(interval_s, _REST * self._took_s)

    def _look_at(self, tree: Tree, table: Mapping[int, usage.Process]) -> Used:
        found = usage.tree((tree.pid,), table)
        before = self._busy.get(tree, {})
        busy = self._busy[tree] = {process.pid: process.busy_s for process in found}
        spent_s = sum(now_s - _earlier(before, pid, now_s) for pid, now_s in busy.items())
        return Used(_memory(found, tree.memory_limit), len(found), sum(busy.values()), spent_s)


def _earlier(before: Mapping[int, float], pid: int, now_s: float) -> float:
    """Return a process's time at the last look; 0 if the pid belongs to a new process."""
    earlier_s = before.get(pid, 0.0)
    return earlier_s if earlier_s <= now_s else 0.0


def _memory(processes: list[usage.Process], limit: int | None) -> int:
    if limit is not None:
        return usage.memory(processes, limit)
    return sum(process.resident for process in processes)


class Watch:
    """Watches the instances; belongs to one event loop, with blocking work in a thread."""

    def __init__(self, runtimes: Runtimes, monitor: Monitor) -> None:
        self._runtimes = runtimes
        self._monitor = monitor
        self._sampler = Sampler()
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Measure the instances for ever."""
        left_out = 0
        while True:
            await asyncio.sleep(self._sampler.rest_s(INTERVAL_S))
            left_out += 1
            if left_out < _SELDOM and not self._limited():
                continue
            left_out = 0
            try:
                await self.look()
            except Exception:  # the next look may succeed
                _log.exception("What the runtimes use could not be looked at.")

    async def look(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name; add up its time, and end it above its limit."""
        async with self._looking:
            trees = {
                instance.name: Tree(instance.pid, instance.definition.memory_limit)
                for _, instance in self._begun()
                if instance.pid is not None
            }
            used = await run_in_thread(lambda: self._sampler.look(trees)) if trees else {}
        for runtime, instance in [*self._begun()]:
            if instance.name in used:
                self._monitor.spent(runtime.name, used[instance.name].spent_s)
                await self._judge(runtime, instance, used[instance.name].memory)
        return used

    async def _judge(self, runtime: Runtime, instance: Instance, memory: int) -> None:
        limit = instance.definition.memory_limit
        if limit is None or memory <= limit:
            return
        had = f"{memory // _MIB} MiB, and its limit is {limit // _MIB} MiB"
        instance.log.note(f"killed: its processes had {had}")
        runtime.end(instance, "memory")
        await instance.kill()

    def _begun(self) -> Iterator[tuple[Runtime, Instance]]:
        for runtime in self._runtimes.all():
            for instance in runtime.begun:
                yield runtime, instance

    def _limited(self) -> bool:
        return any(instance.definition.memory_limit for _, instance in self._begun())
