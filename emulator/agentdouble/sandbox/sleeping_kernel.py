"""The Python kernel of a session that has expired: stopped, until the session is resumed.

The first session that is resumed from it continues the kernel itself, with its threads and child
processes, so nothing is copied when a session expires. Before that, a template is forked from the
kernel, and later sessions are copies of the template, as those of any other snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from agentdouble.core.threads import run_in_thread
from agentdouble.errors import SnapshotRefusedError
from agentdouble.processes import usage
from agentdouble.processes.files_snapshot import size_of
from agentdouble.sandbox.ready_kernels import PooledKernel

if TYPE_CHECKING:
    from agentdouble.processes.copies.kernel_snapshot import KernelSnapshot
    from agentdouble.processes.workspace import Workspace
    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.kernel_pool import KernelPool


class SleepingKernel:
    """A stopped kernel and its files, ``size`` bytes; see ``Snapshot`` for the attributes."""

    def __init__(
        self, kernel: Kernel, files: Workspace, pool: KernelPool, omitted: tuple[str, ...]
    ) -> None:
        self.files = files
        self.omitted = omitted
        self.gone = asyncio.get_running_loop().create_future()
        self.size = 0
        self.ending = "the process that held it ended"
        self._kernel: Kernel | None = kernel  # until the first session is resumed
        self._pool = pool
        self._template: KernelSnapshot | None = None
        self._resuming = asyncio.Lock()
        kernel.left.add_done_callback(lambda _: self._note_end(kernel))

    async def measure(self) -> int:
        """Return the memory and the size of the files, in bytes; the kernel is stopped."""
        pids = () if self._kernel is None else (self._kernel.pid,)
        self.size = await run_in_thread(lambda: size_of(self.files))
        return self.size + await run_in_thread(lambda: usage.memory(usage.walk(pids), 0))

    def stop(self) -> None:
        """Stop the kernel and what it has started, so that they use no processor time."""
        self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        if self._kernel is None:
            return
        self._kernel.send_signal(number)
        for process in usage.walk((self._kernel.pid,))[1:]:
            _send(process, number)

    async def resume(self) -> PooledKernel:
        """Return the kernel with its files, or a copy of both if another session has them.

        Raises SnapshotRefusedError, and the errors of a kernel's start.
        """
        async with self._resuming:
            kernel = self._kernel
            if kernel is None:
                return await self._copy()
            self._signal(signal.SIGCONT)
            try:
                self._template = await self._pool.snapshot(kernel, self.files)
            except SnapshotRefusedError as error:
                if not kernel.alive:
                    raise
                self._end(f"it has been resumed once, and cannot be copied: {error.reason}")
            except BaseException:  # its caller has gone, or a resource is exhausted
                self.stop()
                raise
            else:
                self._template.gone.add_done_callback(lambda _: self._end(self.ending))
            self._kernel = None
            return PooledKernel(kernel, self.files)

    async def _copy(self) -> PooledKernel:
        if self._template is None:
            raise SnapshotRefusedError(self.ending, "InvalidSnapshot.NotReady")
        return await self._pool.copy(self._template)

    def _note_end(self, kernel: Kernel) -> None:
        if kernel is self._kernel:
            self._end(f"its kernel ended while it was asleep: {kernel.how_it_ended()}")

    def _end(self, reason: str) -> None:
        self.ending = reason
        if not self.gone.done():
            self.gone.set_result(None)

    async def discard(self) -> None:
        """End the kernel unless a session has it, and remove the files."""
        async with self._resuming:
            kernel, self._kernel = self._kernel, None
            if kernel is not None:
                await kernel.kill("its snapshot was deleted")
                await run_in_thread(self.files.remove)
            if self._template is not None:
                await self._template.discard()


def _send(process: usage.Process, number: signal.Signals) -> None:
    """Send a signal to a descendant, if its pid is still that of the process."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if usage.parent_of(process.pid) == process.parent:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
