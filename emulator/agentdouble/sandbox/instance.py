"""One session's sandbox: its kernels, its workspace, its deadline."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentdouble import ledger
from agentdouble.errors import InstanceBusyError, InstanceEndedError, InstancePausedError
from agentdouble.sandbox import languages
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernels import Kernels
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.workspace import Workspace


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
        kernels: Kernels,
        output_limit: int,
        on_lost: Callable[[Instance, str], None],
    ) -> None:
        self.id = f"s-{secrets.token_hex(10)}"
        self.key = key
        self.created_at = created_at
        self.ttl = ttl
        self.deadline = created_at + ttl
        self.executions = 0
        self._source = kernels
        self._output_limit = output_limit
        self._on_lost = on_lost
        self._workspace: Workspace | None = None
        self._kernels: dict[str, Kernel] = {}
        self._turn = asyncio.Lock()
        self._ended: str | None = None
        self._paused_at: dt.datetime | None = None

    @property
    def state(self) -> Literal["active", "paused"]:
        """What the instance is, as long as it lives."""
        return "active" if self._paused_at is None else "paused"

    def pause(self, now: dt.datetime) -> None:
        """Run nothing until ``resume``; code that runs already runs on."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: dt.datetime) -> None:
        """Run code again; what was left of the validity is left still, if the ledger says so."""
        if self._paused_at is not None and ledger.choose("U-TTL-PAUSED") == "stops":
            self.deadline += now - self._paused_at
        self._paused_at = None

    def is_due(self, now: dt.datetime) -> bool:
        """Whether the deadline has come (SBX-03, U-TTL-DURING, U-TTL-PAUSED)."""
        if self.deadline > now:
            return False
        if self._paused_at is not None and ledger.choose("U-TTL-PAUSED") == "stops":
            return False
        return not (self.busy and ledger.choose("U-TTL-DURING") == "finishes")

    @property
    def busy(self) -> bool:
        """Whether code runs or waits for its turn."""
        return self._turn.locked()

    @property
    def home(self) -> Path | None:
        """Where the session's own files lie on this machine, once it has run something."""
        return None if self._workspace is None else self._workspace.home

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the instance's living kernels."""
        living = (kernel.pid for kernel in self._kernels.values() if kernel.alive)
        return tuple(pid for pid in living if pid is not None)

    async def execute(self, code: str, language: str, timeout_s: float) -> ExecutionResult:
        """Run code in the session, one execution at a time, in arrival order (SBX-02).

        Raises UnknownLanguageError, KernelStartError, InstancePausedError, InstanceEndedError
        if the instance ended before its turn came, or InstanceBusyError where the ledger says
        so.
        """
        kind = languages.find(language)
        if self.busy and ledger.choose("U-EXEC-CONCURRENCY") == "refused":
            raise InstanceBusyError(self.key.user_session_id)
        async with self._turn:
            if self._ended is not None:
                raise InstanceEndedError(self.key.user_session_id, self._ended)
            if self._paused_at is not None:
                raise InstancePausedError(self.key.user_session_id)
            kernel = await self._kernel(kind)
            self.executions += 1
            return await kernel.execute(code, timeout_s=timeout_s, output_limit=self._output_limit)

    async def _kernel(self, language: Language) -> Kernel:
        kernel = self._kernels.get(language.name)
        if kernel is None:
            kernel = await self._start(language)
            self._kernels[language.name] = kernel
            if self._ended is not None:  # it ended while its kernel started
                await kernel.kill(self._ended)
                raise InstanceEndedError(self.key.user_session_id, self._ended)
            kernel.died.add_done_callback(lambda _: self._lost(kernel))
        return kernel

    def _lost(self, kernel: Kernel) -> None:
        """Tell that a kernel has ended, unless that was meant or the code that ran will say so."""
        if self._ended is None and not self.busy:
            self._on_lost(self, kernel.last_words())

    async def _start(self, language: Language) -> Kernel:
        """Start a kernel; the first one of a session may be one that was kept ready."""
        if self._workspace is None and language is languages.PYTHON:
            berth = await self._source.take()
            self._workspace = berth.workspace
            return berth.kernel
        self._workspace = self._workspace or self._source.workspace()
        return await self._source.start(language, self._workspace)

    def refuse(self, reason: str) -> None:
        """Let no execution begin from now on, not even one that waits for its turn."""
        if self._ended is None:
            self._ended = reason

    async def end(self, reason: str) -> None:
        """Kill what runs and remove what was written; return when it is gone."""
        self.refuse(reason)
        await asyncio.gather(*(kernel.kill(reason) for kernel in self._kernels.values()))
        async with self._turn:  # a kernel that was starting meanwhile is gone by then, too
            if self._workspace is not None:
                self._workspace.remove()
