"""Looks at what instances use, again and again, and when somebody asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.runtimes.sampling import Sampler, Tree, Used
from agentdouble.threads import beside

INTERVAL_S = 2.0  # the processor time of what ends in between is not seen

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
        while True:
            try:
                await self.look()
            except Exception:  # what cannot be looked at now may be later
                _log.exception("What the runtimes use could not be looked at.")
            await asyncio.sleep(self._sampler.rest_s(INTERVAL_S))

    async def look(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name; count the time that it spent."""
        async with self._looking:
            trees = {
                instance.name: Tree(instance.pid)
                for runtime in self._runtimes.all()
                for instance in runtime.instances
                if instance.pid is not None
            }
            used = await beside(lambda: self._sampler.look(trees)) if trees else {}
        for runtime in self._runtimes.all():
            for instance in runtime.instances:
                if instance.name in used:
                    self._monitor.spent(runtime.name, used[instance.name].spent_s)
        return used
