"""Starts the kernels of a double, and keeps some of them ready.

A ready kernel has a workspace of its own. A session takes both as they are, so no code has to
change the kernel's directory or environment first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble.core import threads
from agentdouble.errors import KernelStartError, SnapshotRefusedError
from agentdouble.processes import capacity
from agentdouble.processes.copies import kernel_snapshot
from agentdouble.processes.files_snapshot import copy_files
from agentdouble.processes.fork_server.client import ForkServerGoneError
from agentdouble.processes.launcher import launch, retried
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.fork_planner import process_limit_refusal
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.sandbox.ready_kernels import PooledKernel, ReadyKernels
from agentdouble.sandbox.session_process import run_to_completion

if TYPE_CHECKING:
    from agentdouble.processes.copies.kernel_snapshot import KernelSnapshot
    from agentdouble.processes.launcher import ForkPlan
    from agentdouble.sandbox.kernel_channels import KernelSockets
    from agentdouble.sandbox.session_process import SessionProcess

_CHANNELS = "agentdouble.sandbox.kernel_channels"
_FIRST_ANSWER_S = 0.05  # a start costs as much as four answers, so the first answer goes first


class KernelPool:
    """Starts kernels for one double and keeps some ready; belongs to one event loop."""

    def __init__(self, starter: ProcessStarter) -> None:
        self._settings = starter.settings
        self._starter = starter
        self._ready = ReadyKernels(self._make, starter.settings.pool_size)
        self._sockets: KernelSockets | None = None

    @property
    def ready(self) -> int:
        """The number of ready kernels."""
        return len(self._ready)

    async def take(self) -> PooledKernel:
        """Return a Python kernel with its workspace: a ready one if one lives, else a new one.

        Raises the same errors as ``start``.
        """
        pooled = self._ready.take() or await self._make()
        self._ready.fill(after_s=_FIRST_ANSWER_S)
        return pooled

    async def start(
        self, language: Language, workspace: Workspace, others: Iterable[SessionProcess] = ()
    ) -> Kernel:
        """Start a kernel in a workspace and return when it answers.

        ``others`` are the session's other processes, whose network the kernel shares.
        Raises KernelStartError, and ResourceExhaustedError if the machine has no room for it.
        """
        try:
            with self._starter.reserved():
                return await self._start(language, self._launch(language, workspace, others))
        except KernelStartError as error:
            capacity.check()  # a process that lacks resources cannot report that itself
            limit = None if self._settings.isolation == "none" else self._settings.process_limit
            raise process_limit_refusal(error, limit) or error from error.__cause__

    async def snapshot(self, kernel: Kernel, workspace: Workspace) -> KernelSnapshot:
        """Take a snapshot of an idle Python kernel and of its session's files.

        Raises SnapshotRefusedError, including when the kernel is not one of the fork server.
        """
        server = self._starter.planner.server
        if server is None or kernel.language.name != PYTHON.name:
            raise SnapshotRefusedError(
                "only Python kernels of the fork server can be copied: provisioner = 'auto' on Linux"
            )
        files = self._starter.workspace()
        try:
            snapshot = await kernel_snapshot.take(kernel, workspace, files, server)
        except BaseException:
            await threads.run_in_thread(files.remove)
            raise
        workspace.shares_user = True
        return snapshot

    async def copy(self, snapshot: KernelSnapshot) -> PooledKernel:
        """Return a new kernel with the state of a snapshot, in a workspace with its files.

        Raises KernelStartError and ResourceExhaustedError.
        """
        workspace = self._starter.workspace(snapshot.source.variables)
        workspace.shares_user = True
        copying = threads.run_in_thread(lambda: copy_files(snapshot.files, workspace))
        files = asyncio.ensure_future(copying)  # while the kernel is forked
        try:
            with self._starter.reserved():
                launch = self._launch_copy(snapshot, workspace, files)
                return PooledKernel(await self._start(PYTHON, launch), workspace)
        except BaseException as error:
            await asyncio.wait({files})
            await threads.run_in_thread(workspace.remove)
            limit = (snapshot.plan.confinement or {}).get("process_limit")
            raise process_limit_refusal(error, limit) or error from error.__cause__

    async def _launch_copy(
        self, snapshot: KernelSnapshot, workspace: Workspace, files: asyncio.Future[None]
    ) -> Kernel:
        with capacity.named():
            run = workspace.make_run()
        try:
            plan = snapshot.plan_copy(workspace, run, files)
            return await self._started(PYTHON, plan, workspace, run)
        except ForkServerGoneError as error:
            reason = "the template of its snapshot has ended"
            raise KernelStartError(PYTHON.display_name, reason) from error

    async def _start(self, language: Language, launch: Awaitable[Kernel]) -> Kernel:
        """Return the kernel of a launch when it answers."""
        # The launch has the same timeout as the kernel itself: a start that never ends would
        # block its session, and also the end of other sessions.
        timeout_s = self._settings.start_timeout_s
        reason = f"it gave no answer for {timeout_s:g} s"
        try:
            kernel = await asyncio.wait_for(launch, timeout_s)
        except asyncio.TimeoutError:  # the launch is stuck
            raise KernelStartError(language.display_name, reason) from None
        try:
            await asyncio.wait_for(kernel.ready(), timeout_s)
        except asyncio.TimeoutError:
            await kernel.kill("it did not start")
            raise KernelStartError(language.display_name, reason) from None
        except BaseException:
            await kernel.kill("its start was abandoned")
            raise
        return kernel

    def fill(self) -> None:
        """Start the missing ready kernels in the background, up to the number in the settings."""
        self._ready.fill()

    async def close(self) -> None:
        """End the ready kernels and close the sockets of all; then the starter can be closed."""
        await self._ready.close()
        if self._sockets is not None:
            self._sockets.close()
        self._sockets = None

    async def _make(self) -> PooledKernel:
        workspace = self._starter.workspace()
        try:
            return PooledKernel(await self.start(PYTHON, workspace), workspace)
        except BaseException:
            workspace.remove()
            raise

    async def _launch(
        self, language: Language, workspace: Workspace, others: Iterable[SessionProcess]
    ) -> Kernel:
        planner = self._starter.planner
        planner.prepare(language)  # first: it runs in the background during the imports
        await threads.import_in_thread(_CHANNELS)
        memory = self._settings.javascript_memory_limit
        language = language.for_session(memory, workspace.variables)

        async def start() -> Kernel:
            planner.prepare(language)
            with capacity.named():
                run = workspace.make_run()
            plan = await planner.plan(language, workspace, run, others)
            return await self._started(language, plan, workspace, run)

        try:
            return await retried(start)
        except ForkServerGoneError as error:
            raise KernelStartError(language.display_name, str(error)) from error

    async def _started(
        self, language: Language, plan: ForkPlan | None, workspace: Workspace, run: Path
    ) -> Kernel:
        """Start a kernel's process; if that fails, remove all of it.

        Raises ForkServerGoneError, KernelStartError, and ResourceExhaustedError.
        """
        from agentdouble.sandbox.kernel_channels import (  # slow: zmq, 0.2 s
            KernelConnection,
            KernelSockets,
        )

        self._sockets = self._sockets or KernelSockets()
        try:
            connection = KernelConnection(run, self._sockets)
            process = await launch(
                *(language.kernel, plan, workspace, run),
                config=language.config if plan is None else plan.config,
                connection_file=connection.file,
            )
            try:
                return Kernel(language, process, connection, plan)
            except BaseException:
                await run_to_completion(process.end())
                raise
        except OSError as error:
            refusal = capacity.refusal_of(error)
            raise refusal or KernelStartError(language.display_name, str(error)) from error
