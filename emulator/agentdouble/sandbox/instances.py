"""Session instances: made on first use, reused, destroyed on time (section 3).

An instance belongs to a tool and a user session. It has a deadline on the platform's clock;
the reaper destroys what is due, and so does every request that finds it due first.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from dataclasses import dataclass

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.errors import InstanceEndedError, TooManyInstancesError
from agentdouble.sandbox.instance import Instance, InstanceKey
from agentdouble.sandbox.kernels import Kernels
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.settings import Settings

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.05
_REMEMBERED = 10_000


@dataclass(frozen=True)
class Ended:
    """What is remembered of an instance that has ended: when, why, after how many executions."""

    id: str
    key: InstanceKey
    at: dt.datetime
    reason: str
    executions: int


class Instances:
    """Every living session instance, and why the others ended."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._living: dict[InstanceKey, Instance] = {}
        self._ended: dict[str, Ended] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._kernels = Kernels(settings)

    def __len__(self) -> int:
        return len(self._living)

    def living(self) -> tuple[Instance, ...]:
        """Return the living instances, oldest first."""
        return tuple(self._living.values())

    def ended(self) -> tuple[Ended, ...]:
        """Return what is remembered of those that have ended, oldest first."""
        return tuple(self._ended.values())

    async def get_or_create(
        self, tool_id: str, user_session_id: str, ttl_s: int | None = None
    ) -> Instance:
        """Return the session's instance, made now if it has none (SBX-01, SBX-02).

        ``ttl_s`` (seconds) counts only when it is made now (U-TTL-REPEATED). Raises
        TooManyInstancesError at the limit, and InstanceEndedError where the ledger says that
        an ended session stays ended (U-TTL-AFTER).
        """
        await self.destroy_due()
        key = InstanceKey(tool_id, user_session_id)
        instance = self._living.get(key)
        if instance is None:
            return self._create(key, ttl_s)
        return self._use(instance, ttl_s)

    def _use(self, instance: Instance, ttl_s: int | None) -> Instance:
        """Return a living instance; its deadline moves where the ledger says so."""
        renewed = ttl_s is not None and ledger.choose("U-TTL-REPEATED") == "renews"
        if renewed and ttl_s is not None:
            instance.ttl = dt.timedelta(seconds=ttl_s)
        if renewed or ledger.choose("U-TTL-EXTENDS") == "sliding":
            instance.deadline = self._clock.now() + instance.ttl
        return instance

    async def by_id(self, session_id: str, ttl_s: int | None = None) -> Instance | None:
        """Return the living instance with that SessionId; ``ttl_s`` as in ``get_or_create``.

        Raises InstanceEndedError if it has ended; returns None if there never was one.
        """
        await self.destroy_due()
        for instance in self._living.values():
            if instance.id == session_id:
                return self._use(instance, ttl_s)
        ended = self._ended.get(session_id)
        if ended is not None:
            raise InstanceEndedError(session_id, ended.reason)
        return None

    def _create(self, key: InstanceKey, ttl_s: int | None) -> Instance:
        ended = next((one for one in reversed(self._ended.values()) if one.key == key), None)
        if ended is not None and ledger.choose("U-TTL-AFTER") == "error":
            raise InstanceEndedError(key.user_session_id, ended.reason)
        if len(self._living) >= self._settings.max_instances:
            raise TooManyInstancesError(self._settings.max_instances)
        instance = Instance(
            key,
            created_at=self._clock.now(),
            ttl=dt.timedelta(seconds=ttl_s or self._settings.session_ttl_s),
            kernels=self._kernels,
            output_limit=self._settings.output_limit,
            on_lost=self._on_lost,
        )
        self._living[key] = instance
        return instance

    async def execute(
        self, instance: Instance, code: str, language: str, timeout_s: float
    ) -> ExecutionResult:
        """Run code in an instance; destroy the instance if its context is lost by it."""
        result = await instance.execute(code, language, timeout_s)
        lost = result.context_lost
        if result.status == "timeout" and ledger.choose("U-EXEC-TIMEOUT") == "instance-lost":
            lost = True
        if lost:
            await self.destroy(instance, result.message.rstrip("."))
        return result.without_colours() if self._settings.plain_tracebacks else result

    async def destroy(self, instance: Instance, reason: str) -> None:
        """End an instance and remember why; return when its processes are gone (SBX-03)."""
        instance.refuse(reason)
        if self._living.get(instance.key) is instance:
            del self._living[instance.key]
            self._remember(instance, reason)
        task = asyncio.ensure_future(instance.end(reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)

    def _remember(self, instance: Instance, reason: str) -> None:
        ended = Ended(instance.id, instance.key, self._clock.now(), reason, instance.executions)
        self._ended[instance.id] = ended
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def _on_lost(self, instance: Instance, reason: str) -> None:
        """Destroy an instance whose kernel has ended while nothing ran in it."""
        task = asyncio.ensure_future(self.destroy(instance, f"{reason}, while nothing ran"))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def pause(self, instance: Instance) -> None:
        """Let an instance run nothing until it is resumed."""
        instance.pause(self._clock.now())

    def resume(self, instance: Instance) -> None:
        """Let a paused instance run code again (U-TTL-PAUSED)."""
        instance.resume(self._clock.now())

    def set_ttl(self, instance: Instance, ttl: dt.timedelta) -> None:
        """Let an instance live for ``ttl`` from now on."""
        instance.deadline = self._clock.now() + ttl  # first: it may lie beyond the calendar
        instance.ttl = ttl

    async def destroy_due(self) -> None:
        """Destroy every instance whose deadline has come (SBX-03, U-TTL-DURING)."""
        now = self._clock.now()
        due = [instance for instance in self._living.values() if instance.is_due(now)]
        await asyncio.gather(
            *(self.destroy(i, f"expired at {i.deadline:%Y-%m-%dT%H:%M:%SZ}") for i in due)
        )

    async def settle(self) -> None:
        """Destroy what is due; return when every instance that is ending is gone."""
        await self.destroy_due()
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def reap(self) -> None:
        """Destroy what is due, for ever; polls, because a frozen clock wakes nobody."""
        while True:
            try:
                await self.destroy_due()
            except Exception:  # one instance that cannot be ended must not keep the rest alive
                _log.exception("The reaper could not destroy an instance that was due.")
            await asyncio.sleep(REAPER_INTERVAL_S)

    async def reset(self, reason: str) -> None:
        """Destroy every instance and forget those that ended; return when all are gone."""
        await asyncio.gather(*(self.destroy(i, reason) for i in self.living()))
        if self._ending:
            await asyncio.wait(set(self._ending))
        self._ended.clear()

    async def close(self) -> None:
        """Destroy every instance and let go of sockets and directories."""
        await self.reset("the double stopped")
        await self._kernels.close()
