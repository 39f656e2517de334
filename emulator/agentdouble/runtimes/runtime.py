"""A runtime: its versions, its status, and the way to its instances."""

from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from agentdouble.clock import Clock
from agentdouble.errors import RuntimeNameError
from agentdouble.runtimes.definition import Definition, Version, Versions
from agentdouble.runtimes.instance import Instance, Launch
from agentdouble.runtimes.logs import RuntimeLogs
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.pool import ObservedClock, Pool
from agentdouble.runtimes.scaling import Scaler

Word = Literal["Creating", "Ready", "Updating", "Error", "Releasing", "Deleting", "UnReleased"]
_STEPS, _STEP_S = 20, 0.001


@dataclass(frozen=True)
class Status:
    """A status of the platform; ``message`` gives the reason if there is one."""

    word: Word
    message: str = ""


class Runtime:
    """A runtime; belongs to one event loop. ``id`` is ``r-...``."""

    def __init__(
        self, id_: str, definition: Definition, clock: Clock, monitor: Monitor, launch: Launch
    ) -> None:
        self.id = id_
        self.name = definition.name
        self.created_at = clock.now()
        self._clock = clock
        self._versions = Versions(Version(1, definition, self.created_at))
        self.logs = RuntimeLogs(clock)
        self._settled = ObservedClock(clock)
        self._scaler = Scaler(
            self._versions, Pool(self.name, self._settled, monitor, self.logs, launch)
        )
        self._under_way: Word = "Updating"

    @property
    def definition(self) -> Definition:
        """The definition in force, which applies to new requests."""
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
    def instances(self) -> tuple[Instance, ...]:
        """The instances that were ready and have not ended, of any version, the oldest first."""
        return self._scaler.pool.living

    @property
    def begun(self) -> tuple[Instance, ...]:
        """The instances, followed by those that are not ready yet."""
        return self._scaler.pool.begun

    @property
    def status(self) -> Status:
        """The status in the platform's words, with the reason."""
        scaler = self._scaler
        if scaler.ended_because:
            return Status("Deleting", scaler.ended_because)
        if scaler.deploying is not None:
            return Status(self._under_way)
        if scaler.undeployed is not None:
            message = f"Version {self.version.number} stays in force. {scaler.undeployed}"
            return Status("Error", message)
        ready = scaler.pool.ready(self.version)
        if scaler.trouble is not None and not ready:
            return Status("Error", str(scaler.trouble))
        if self.definition.scaling.min_instances and not scaler.proven:
            return Status("Creating" if self.version.number == 1 else self._under_way)
        if self._versions.latest.number > self._versions.released:
            message = f"Version {self._versions.latest.number} has not been released."
            return Status("UnReleased", message)
        return Status("Ready")

    def lease(self, session: str | None = None) -> AbstractAsyncContextManager[Instance]:
        """Lend an instance to one request; start one if need be.

        Requests of one ``session`` get the same instance while it lives and takes requests.
        Raises RuntimeStartError, RuntimeBusyError and RuntimeEndedError.
        """
        return self._scaler.lease(session)

    def keep(self, session: str, instance: Instance) -> None:
        """Route the requests of a session to the instance that opened the session."""
        self._scaler.keep(session, instance)

    def ensure_min_instances(self) -> None:
        """Keep at least ``min_instances`` from now on; start them in the background."""
        self._scaler.ensure_min_instances()

    async def update(self, definition: Definition, release: bool = True) -> Version:
        """Make a definition the newest version; with ``release``, begin to bring it into force.

        Raises RuntimeNameError if the name is another one.
        """
        if definition.name != self.name:
            raise RuntimeNameError(definition.name, f"the runtime is called {self.name!r}")
        version = self._versions.add(definition, self._clock.now())
        if release:
            self._deploy(version, "Updating")
        return version

    async def release(self, number: int, word: Word = "Releasing") -> Version:
        """Begin to bring a version into force, also an older one; raise UnknownVersionError.

        The runtime's status is ``word`` meanwhile.
        """
        version = self._versions.find(number)
        self._deploy(version, word)
        return version

    async def deployed(self) -> None:
        """Return when no deployment is under way; raise the error if the latest one failed."""
        await self._scaler.settled.wait()
        if self._scaler.undeployed is not None:
            raise self._scaler.undeployed.with_traceback(None)

    def restore(self, versions: tuple[Version, ...], in_force: int) -> None:
        """Restore the versions that the runtime had before the double was restarted."""
        self._versions.restore(versions, in_force)

    def end(self, instance: Instance, reason: str) -> None:
        """Begin to end one instance, even if it still has requests."""
        self._scaler.pool.end(instance, reason)

    def end_idle(self, idle_s: float) -> None:
        """End the instances that have been idle for as long as the definition says.

        ``idle_s`` applies if the definition says nothing.
        """
        self._settled.look()
        own_s = self.definition.scaling.idle_s
        self._scaler.end_idle(
            self._settled.now(), dt.timedelta(seconds=idle_s if own_s is None else own_s)
        )

    async def settle(self, idle_s: float) -> None:
        """Handle a move of the clock; return when every ending instance has ended."""
        for _ in range(_STEPS):  # an answered request must end before the move
            if not self._scaler.in_flight:
                break
            await asyncio.sleep(_STEP_S)
        self._settled.catch_up()
        self.end_idle(idle_s)
        await self._scaler.pool.settle()

    def begin_shutdown(self) -> None:
        """Turn away waiting requests: the double is about to stop."""
        self._scaler.turn_away("the double stops")

    async def close(self, reason: str = "it was deleted") -> None:
        """Turn every request away and end every instance; return when nothing is left."""
        await self._scaler.close(reason)

    def _deploy(self, version: Version, word: Word) -> None:
        self._under_way = word
        self._scaler.deploy(version)
