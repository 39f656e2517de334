"""Looks at what instances use, again and again, and when somebody asks; ends what uses too much.

An instance is ended when it is seen over its memory limit, so for a moment it can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.runtimes.sampling import Sampler, Tree, Used
from agentdouble.threads import run_in_thread

INTERVAL_S = 0.25
_SELDOM = 8  # looks that are left out where nothing is limited; their time is counted later
_MIB = 1024 * 1024

_log = logging.getLogger(__name__)


class Watch:
    """Belongs to one event loop; what blocks is done beside it."""

    def __init__(self, runtimes: Runtimes, monitor: Monitor) -> None:
        self._runtimes = runtimes
        self._monitor = monitor
        self._sampler = Sampler()
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Look for ever."""
        left_out = 0
        while True:
            await asyncio.sleep(self._sampler.rest_s(INTERVAL_S))
            left_out += 1
            if left_out < _SELDOM and not self._limited():
                continue
            left_out = 0
            try:
                await self.look()
            except Exception:  # what cannot be looked at now may be later
                _log.exception("What the runtimes use could not be looked at.")

    async def look(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name; count its time, end it if that is too much."""
        async with self._looking:
            trees = {
                instance.name: Tree(instance.pid, instance.definition.memory_limit, instance.keeper)
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
