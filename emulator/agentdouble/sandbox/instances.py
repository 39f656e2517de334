"""Session instances: made on first use, reused, destroyed on time (section 3).

An instance belongs to a tool and a user session. It has a deadline on the platform's clock;
the reaper destroys what is due, and so does every request that finds it due first.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import secrets
from dataclasses import dataclass

from agentdouble import ledger
from agentdouble.clock import Clock
from agentdouble.errors import InstanceBusyError, InstanceEndedError, TooManyInstancesError
from agentdouble.sandbox import languages
from agentdouble.sandbox.kernel import Kernel, KernelSockets
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.workspace import Workspace, Workspaces
from agentdouble.settings import Settings

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.05
_REMEMBERED = 10_000


@dataclass(frozen=True)
class InstanceKey:
    """Whose instance it is: a tool and the tool-user session id."""

    tool_id: str
    user_session_id: str


class Instance:
    """One session's sandbox: a workspace and a kernel for each language used."""

    def __init__(
        self,
        key: InstanceKey,
        *,
        created_at: dt.datetime,
        ttl: dt.timedelta,
        workspace: Workspace,
        sockets: KernelSockets,
        settings: Settings,
    ) -> None:
        self.id = f"s-{secrets.token_hex(10)}"
        self.key = key
        self.created_at = created_at
        self.ttl = ttl
        self.deadline = created_at + ttl
        self.executions = 0
        self._workspace = workspace
        self._sockets = sockets
        self._settings = settings
        self._kernels: dict[str, Kernel] = {}
        self._turn = asyncio.Lock()
        self._ended: str | None = None

    @property
    def busy(self) -> bool:
        """Whether code runs or waits for its turn."""
        return self._turn.locked()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the instance's living kernels."""
        living = (kernel.pid for kernel in self._kernels.values() if kernel.alive)
        return tuple(pid for pid in living if pid is not None)

    async def execute(self, code: str, language: str, timeout_s: float) -> ExecutionResult:
        """Run code in the session, one execution at a time, in arrival order (SBX-02).

        Raises UnknownLanguageError, KernelStartError, InstanceEndedError if the instance
        ended before its turn came, or InstanceBusyError where the ledger says so.
        """
        kind = languages.find(language)
        if self.busy and ledger.choose("U-EXEC-CONCURRENCY") == "refused":
            raise InstanceBusyError(self.key.user_session_id)
        async with self._turn:
            if self._ended is not None:
                raise InstanceEndedError(self.key.user_session_id, self._ended)
            kernel = await self._kernel(kind)
            self.executions += 1
            return await kernel.execute(
                code, timeout_s=timeout_s, output_limit=self._settings.output_limit
            )

    async def _kernel(self, language: languages.Language) -> Kernel:
        kernel = self._kernels.get(language.name)
        if kernel is None:
            kernel = await Kernel.start(
                language,
                self._workspace,
                self._sockets,
                provisioner=self._settings.provisioner,
                timeout_s=self._settings.kernel_start_timeout_s,
            )
            self._kernels[language.name] = kernel
            if self._ended is not None:  # it ended while its kernel started
                await kernel.kill(self._ended)
                raise InstanceEndedError(self.key.user_session_id, self._ended)
        return kernel

    def refuse(self, reason: str) -> None:
        """Let no execution begin from now on, not even one that waits for its turn."""
        if self._ended is None:
            self._ended = reason

    async def end(self, reason: str) -> None:
        """Kill what runs and remove what was written; return when it is gone."""
        self.refuse(reason)
        await asyncio.gather(*(kernel.kill(reason) for kernel in self._kernels.values()))
        async with self._turn:  # a kernel that was starting meanwhile is gone by then, too
            self._workspace.remove()


class Instances:
    """Every living session instance, and why the others ended."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._living: dict[InstanceKey, Instance] = {}
        self._ended: dict[InstanceKey, str] = {}
        self._ended_ids: dict[str, str] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._sockets: KernelSockets | None = None
        self._workspaces: Workspaces | None = None

    def __len__(self) -> int:
        return len(self._living)

    def living(self) -> tuple[Instance, ...]:
        """Return the living instances, oldest first."""
        return tuple(self._living.values())

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
        if session_id in self._ended_ids:
            raise InstanceEndedError(session_id, self._ended_ids[session_id])
        return None

    def _create(self, key: InstanceKey, ttl_s: int | None) -> Instance:
        ended = self._ended.get(key)
        if ended is not None and ledger.choose("U-TTL-AFTER") == "error":
            raise InstanceEndedError(key.user_session_id, ended)
        if len(self._living) >= self._settings.max_instances:
            raise TooManyInstancesError(self._settings.max_instances)
        self._sockets = self._sockets or KernelSockets()
        self._workspaces = self._workspaces or Workspaces()
        instance = Instance(
            key,
            created_at=self._clock.now(),
            ttl=dt.timedelta(seconds=ttl_s or self._settings.session_ttl_s),
            workspace=self._workspaces.make(),
            sockets=self._sockets,
            settings=self._settings,
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
        return result

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
        self._ended[instance.key] = reason
        self._ended_ids[instance.id] = reason
        if len(self._ended_ids) > _REMEMBERED:
            del self._ended_ids[next(iter(self._ended_ids))]
        if len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]

    async def destroy_due(self) -> None:
        """Destroy every instance whose deadline has come (SBX-03, U-TTL-DURING)."""
        now = self._clock.now()
        due = [i for i in self._living.values() if i.deadline <= now and not _spared(i)]
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
        self._ended_ids.clear()

    async def close(self) -> None:
        """Destroy every instance and let go of sockets and directories."""
        await self.reset("the double stopped")
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None
        if self._workspaces is not None:
            self._workspaces.remove()
            self._workspaces = None


def _spared(instance: Instance) -> bool:
    """Whether an instance that is due may go on because code runs in it."""
    return instance.busy and ledger.choose("U-TTL-DURING") == "finishes"
