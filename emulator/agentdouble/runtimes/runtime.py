"""A runtime: its version in force, its instances, and who is given which."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentdouble.clock import Clock
from agentdouble.errors import RuntimeNameError
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.instance import Instance, Launch
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime_logs import RuntimeLogs
from agentdouble.runtimes.status import Status
from agentdouble.runtimes.versions import Version, Versions


class Runtime:
    """A runtime; belongs to one event loop. ``id`` is ``r-...``."""

    def __init__(
        self, id_: str, definition: Definition, clock: Clock, monitor: Monitor, launch: Launch
    ) -> None:
        self.id = id_
        self.created_at = clock.now()
        self.logs = RuntimeLogs(clock)
        self._versions = Versions(Version(1, definition, self.created_at))
        self._clock = clock
        self._monitor = monitor
        self._launch = launch
        self._instances: list[Instance] = []
        self._made = 0
        self._starting = asyncio.Lock()

    @property
    def definition(self) -> Definition:
        """The definition in force, which new requests meet."""
        return self._versions.in_force.definition

    @property
    def version(self) -> Version:
        """The version in force."""
        return self._versions.in_force

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions that are kept, the oldest first."""
        return self._versions.all()

    @property
    def status(self) -> Status:
        """How it is, in the platform's words, and why."""
        return Status("Ready")

    @property
    def name(self) -> str:
        """Its name, unique among the runtimes of a double."""
        return self.definition.name

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances that live, the oldest first."""
        return tuple(instance for instance in self._instances if instance.alive)

    @asynccontextmanager
    async def lease(self, session: str | None = None) -> AsyncIterator[Instance]:
        """Give an instance for one request, started if need be; raise RuntimeStartError.

        Requests of one ``session`` get the same instance while it lives.
        """
        instance = await self._instance()
        instance.in_flight += 1
        try:
            yield instance
        finally:
            instance.in_flight -= 1

    async def update(self, definition: Definition, release: bool = True) -> Version:
        """Make a definition the newest version, and put it in force with ``release``.

        Raises RuntimeNameError for another name.
        """
        if definition.name != self.name:
            raise RuntimeNameError(definition.name, f"the runtime is called {self.name!r}")
        version = self._versions.add(definition, self._clock.now())
        if release:
            await self.release(version.number)
        return version

    async def release(self, number: int) -> Version:
        """Put a version in force, an older one too; raise UnknownVersionError."""
        version = self._versions.in_force = self._versions.find(number)
        await self.close()
        return version

    def restore(self, versions: tuple[Version, ...], in_force: int) -> None:
        """Take up the versions of a runtime that there was before the double was restarted."""
        self._versions.restore(versions, in_force)

    async def close(self) -> None:
        """End every instance."""
        await asyncio.gather(*(instance.end() for instance in self._instances))
        self._instances.clear()

    async def _instance(self) -> Instance:
        async with self._starting:
            living = self.instances
            if living:
                return living[0]
            self._made += 1
            begun = time.perf_counter()
            name = f"{self.name}-{self._made}"
            started = Instance(
                name,
                self.definition,
                self._launch,
                self.logs.open(name),
                self._clock.now(),
                self._versions.in_force.number,
            )
            await started.start()
            self._monitor.started(self.name, time.perf_counter() - begun, cold=True)
            self._instances.append(started)
            return started
