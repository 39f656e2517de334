"""The runtimes of a double, by name and by id."""

from __future__ import annotations

import asyncio
import secrets

from agentdouble.clock import Clock
from agentdouble.errors import RuntimeNameError
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.instance import Launch
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime


class Runtimes:
    """Makes runtimes, finds and ends them; belongs to one event loop."""

    def __init__(self, clock: Clock, monitor: Monitor, launch: Launch) -> None:
        self._clock = clock
        self._monitor = monitor
        self._launch = launch
        self._by_name: dict[str, Runtime] = {}

    def all(self) -> tuple[Runtime, ...]:
        """Return them in the order of their making."""
        return tuple(self._by_name.values())

    def find(self, name: str) -> Runtime | None:
        """Return the runtime of that name, if there is one."""
        return self._by_name.get(name)

    def find_by_id(self, id_: str) -> Runtime | None:
        """Return the runtime of that id, if there is one."""
        return next((one for one in self._by_name.values() if one.id == id_), None)

    async def create(self, definition: Definition, id_: str | None = None) -> Runtime:
        """Make a runtime, without an instance as yet; raise RuntimeNameError.

        ``id_`` is that of a runtime which there was before the double was restarted.
        """
        if definition.name in self._by_name:
            raise RuntimeNameError(definition.name, "there is one of that name")
        runtime = Runtime(
            id_ or f"r-{secrets.token_hex(8)}", definition, self._clock, self._monitor, self._launch
        )
        self._by_name[definition.name] = runtime
        return runtime

    async def delete(self, name: str) -> None:
        """End a runtime and its instances."""
        runtime = self._by_name.pop(name)
        await runtime.close()
        runtime.logs.close()
        self._monitor.forget(name)

    async def close(self) -> None:
        """End them all."""
        self.let_go()
        await asyncio.gather(*(runtime.close() for runtime in self._by_name.values()))
        self._by_name.clear()

    def let_go(self) -> None:
        """Let go of who follows logs: the double is about to end."""
        for runtime in self._by_name.values():
            runtime.logs.close()
