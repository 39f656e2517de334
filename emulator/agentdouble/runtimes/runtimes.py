"""The runtimes of a double, by name."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Collection

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.errors import RuntimeNameError, UnknownRuntimeError
from agentdouble.runtimes.definition import Definition, check_name
from agentdouble.runtimes.instance import Launch
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.25
_IDLE_S = 300.0


class Runtimes:
    """Creates, finds and ends runtimes; belongs to one event loop.

    If a runtime does not set its own idle time, ``idle_s`` applies, provided that the ledger lets
    the settings decide. ``taken`` are names that no runtime can have.
    """

    def __init__(
        self,
        clock: Clock,
        monitor: Monitor,
        launch: Launch,
        *,
        idle_s: float = _IDLE_S,
        taken: Collection[str] = (),
    ) -> None:
        self._clock = clock
        self._monitor = monitor
        self._launch = launch
        self._idle_s = idle_s
        self._taken = frozenset(taken)
        self._by_name: dict[str, Runtime] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._open = False

    def all(self) -> tuple[Runtime, ...]:
        """Return the runtimes in the order of their creation."""
        return tuple(self._by_name.values())

    def find(self, name: str) -> Runtime | None:
        """Return the runtime with this name, or None."""
        return self._by_name.get(name)

    async def create(self, definition: Definition, id_: str | None = None) -> Runtime:
        """Create a runtime; raise RuntimeNameError.

        ``id_`` is the id of a runtime that existed before the double was restarted.
        """
        check_name(definition.name, self._taken)
        if definition.name in self._by_name:
            raise RuntimeNameError(definition.name, "there is one of that name")
        runtime = Runtime(
            id_ or f"r-{secrets.token_hex(8)}", definition, self._clock, self._monitor, self._launch
        )
        self._by_name[definition.name] = runtime
        if self._open:
            runtime.ensure_min_instances()
        return runtime

    def ensure_min_instances(self) -> None:
        """Keep the ``min_instances`` of every runtime from now on."""
        self._open = True
        for runtime in self.all():
            runtime.ensure_min_instances()

    async def delete(self, name: str) -> None:
        """End a runtime and its instances; raise UnknownRuntimeError."""
        if name not in self._by_name:
            raise UnknownRuntimeError(name, self._by_name)
        await asyncio.wait({self._end(name, "it was deleted")})

    async def close(self, reason: str = "the double was reset or stopped") -> None:
        """End all runtimes; return when nothing is left, also of those deleted before."""
        for name in list(self._by_name):
            self._end(name, reason)
        if self._closing:
            await asyncio.wait(set(self._closing))

    def begin_shutdown(self) -> None:
        """Turn away waiting requests: the double is about to stop."""
        for runtime in self.all():
            runtime.begin_shutdown()

    def end_idle(self) -> None:
        """End the instances that have been idle for long enough (HST-02, U-SCALE-IDLE)."""
        for runtime in self.all():
            runtime.end_idle(self._unsaid_idle_s())

    async def settle(self) -> None:
        """End idle instances; return when every ending instance has ended."""
        idle_s = self._unsaid_idle_s()
        await asyncio.gather(*(runtime.settle(idle_s) for runtime in self.all()))

    async def reap(self) -> None:
        """End idle instances for ever; it polls, because a move of a frozen clock wakes no task."""
        while True:
            try:
                self.end_idle()
            except Exception:  # an error must not stop the reaper
                _log.exception("The instances that are idle could not be ended.")
            await asyncio.sleep(REAPER_INTERVAL_S)

    def _unsaid_idle_s(self) -> float:
        return self._idle_s if ledger.choose("U-SCALE-IDLE") == "settings" else _IDLE_S

    async def _close(self, runtime: Runtime, reason: str) -> None:
        await runtime.close(reason)
        if self.find(runtime.name) is None:
            self._monitor.forget(runtime.name)

    def _end(self, name: str, reason: str) -> asyncio.Task[None]:
        """Begin to end a runtime in a separate task; from now on it cannot be found."""
        task = asyncio.ensure_future(self._close(self._by_name.pop(name), reason))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task
