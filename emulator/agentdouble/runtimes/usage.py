"""Measures what instances use, regularly and on request; ends those that use too much memory.

An instance is ended when a measurement shows it over its memory limit, so it can exceed the limit
for a moment. Memory is measured, not limited by the system. A limit of the address space would
refuse memory that programs merely reserve (threads, engines with a heap of their own), and would
apply to each child separately. The limit here applies to all processes of an instance together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from agentdouble.core.threads import pause, run_in_thread
from agentdouble.processes import usage
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime

INTERVAL_S = 0.25  # if an instance has a memory limit
_LONG_INTERVAL_S = 2.0
_MIB = 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Used:
    """What an instance uses: resident memory (bytes), processes, processor time (seconds)."""

    memory: int = 0
    processes: int = 0
    cpu_s: float = 0.0


class Watch:
    """Watches the instances; belongs to one event loop, with blocking work in a thread."""

    def __init__(self, registry: RuntimeRegistry, monitor: Monitor) -> None:
        self._registry = registry
        self._monitor = monitor
        self._busy: dict[Instance, float] = {}  # processor time at the last measurement
        self._measuring = asyncio.Lock()

    async def run(self) -> None:
        """Measure the instances until it is cancelled."""
        while True:
            limited = any(instance.definition.memory_limit for _, instance in self._begun())
            await pause(INTERVAL_S if limited else _LONG_INTERVAL_S)
            try:
                await self.measure()
            except Exception:  # the next measurement may succeed
                _log.exception("What the runtimes use could not be measured.")

    async def measure(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name; add up its time, and end it above its limit."""
        async with self._measuring:
            pairs = [
                (runtime, instance)
                for runtime, instance in self._begun()
                if instance.pid is not None
            ]
            instances = [instance for _, instance in pairs]
            used = await run_in_thread(lambda: _measure(instances)) if instances else {}
        for runtime, instance in pairs:
            cpu_s = used[instance.name].cpu_s
            self._monitor.spent(runtime.name, max(0.0, cpu_s - self._busy.get(instance, 0.0)))
            self._busy[instance] = cpu_s
            await self._judge(runtime, instance, used[instance.name].memory)
        for ended in self._busy.keys() - set(instances):
            del self._busy[ended]
        return used

    async def _judge(self, runtime: Runtime, instance: Instance, memory: int) -> None:
        limit = instance.definition.memory_limit
        if limit is None or memory <= limit:
            return
        mib = f"{memory // _MIB} MiB, and its limit is {limit // _MIB} MiB"
        instance.log.note(f"killed: its processes had {mib}")
        runtime.end(instance, "memory")
        await instance.kill()

    def _begun(self) -> list[tuple[Runtime, Instance]]:
        runtimes = self._registry.runtimes()
        return [(runtime, instance) for runtime in runtimes for instance in runtime.begun]


def _measure(instances: list[Instance]) -> Mapping[str, Used]:
    measured = {}
    for instance in instances:
        tree = usage.walk((instance.pid or 0,))
        limit = instance.definition.memory_limit
        resident = sum(process.resident for process in tree)
        memory = resident if limit is None else usage.memory(tree, limit)
        busy_s = sum(process.busy_s for process in tree)
        measured[instance.name] = Used(memory, len(tree), busy_s)
    return measured
