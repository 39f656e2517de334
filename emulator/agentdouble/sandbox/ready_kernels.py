"""The kernels that are started before they are needed, each in a workspace of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from agentdouble.core import threads
from agentdouble.errors import KernelStartError, ResourceExhaustedError
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.kernel import Kernel

_ENDED = "it ended while it was kept ready"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PooledKernel:
    """A kernel and the workspace in which it was started."""

    kernel: Kernel
    workspace: Workspace


class ReadyKernels:
    """Keeps ``size`` kernels ready, started by ``make``; belongs to one event loop."""

    def __init__(self, make: Callable[[], Awaitable[PooledKernel]], size: int) -> None:
        self._make = make
        self._size = size
        self._kept: deque[PooledKernel] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._discarding: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return sum(pooled.kernel.alive for pooled in self._kept)

    def take(self) -> PooledKernel | None:
        """Return a living kernel, or None if there is none; the caller then owns it."""
        # Ask it now whether it lives. A kernel that dies later may have run the caller's code
        # already, and code runs at most once, so it is not run again in another kernel.
        while self._kept:
            pooled = self._kept.popleft()
            if pooled.kernel.lives():
                return pooled
            self._discard(pooled, _ENDED)
        return None

    def fill(self, *, after_s: float = 0) -> None:
        """Start the missing kernels in the background, after ``after_s`` seconds."""
        if not self._closed and (self._filling is None or self._filling.done()):
            self._filling = asyncio.ensure_future(self._fill(after_s))

    async def close(self) -> None:
        """End all kernels, including those that are starting; start none from now on."""
        self._closed = True
        while self._filling is not None and not self._filling.done():
            self._filling.cancel()
            await asyncio.wait({self._filling})
        while self._kept:
            self._discard(self._kept.popleft(), "the double stopped")
        if self._discarding:
            await asyncio.wait(self._discarding)

    async def _fill(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        try:
            while len(self._kept) < self._size:
                pooled = await self._make()
                self._kept.append(pooled)
                pooled.kernel.died.add_done_callback(partial(self._on_died, pooled))
        except (KernelStartError, ResourceExhaustedError) as error:
            if not self._closed:  # a start that notices the stop before it is cancelled fails, too
                # A caller that needs a kernel gets the error.
                _log.warning("Starting a ready kernel failed: %s", error)

    def _on_died(self, pooled: PooledKernel, _died: asyncio.Future[int | None]) -> None:
        """Forget a ready kernel that has ended; the next ``fill`` starts another one."""
        if pooled not in self._kept:  # it was taken
            return
        self._kept.remove(pooled)
        self._discard(pooled, _ENDED)

    def _discard(self, pooled: PooledKernel, reason: str) -> None:
        """End a ready kernel and remove its workspace, in the background."""

        async def discard() -> None:
            await pooled.kernel.kill(reason)
            await threads.run_in_thread(pooled.workspace.remove)

        task = asyncio.ensure_future(discard())
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)
