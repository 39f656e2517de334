"""The processes of a session on this machine: kernels, bash, a browser, and their files.

Three things can happen while a process starts, because each start awaits: the session ends, its
caller is cancelled, or another call needs the same process. The rules, wherever one starts here:

- ``_making_workspace`` is held while a kernel or the workbench starts, so that the first of them
  decides on the workspace. A ready kernel brings its own.
- Whoever has started a process looks at ``end_reason`` before anybody uses it, because ``kill``
  only knows processes that had started when it was called.
- ``remove`` takes the locks of all starts, so it comes after those that it would leave without
  files.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentdouble.core import ledger
from agentdouble.core.threads import run_in_thread
from agentdouble.errors import (
    CodeNotBegunError,
    DirectoryError,
    SandboxError,
    SnapshotRefusedError,
    WorkbenchError,
)
from agentdouble.journal.entries import note_step
from agentdouble.processes.copies.kernel_snapshot import KernelSnapshot
from agentdouble.processes.files_snapshot import ArchivedFiles, FilesSnapshot
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox import completions, languages
from agentdouble.sandbox.completions import KernelCompletion
from agentdouble.sandbox.exec_bash import ExecBash
from agentdouble.sandbox.kernel import Kernel, MidRunFault
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.named_kernels import NamedKernels, inside
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session_process import Kind, OnDemandProcess, run_to_completion
from agentdouble.sandbox.session_processes import (
    SCOPE_KEY,
    EmptySnapshot,
    LastSnapshot,
    Snapshot,
)
from agentdouble.sandbox.sleeping_kernel import SleepingKernel
from agentdouble.sandbox.variables import Variables, listed_variables
from agentdouble.sandbox.workbench.wire import DIRECTORY

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agentdouble.sandbox.browser.browser import Browser
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.session import SandboxSession
    from agentdouble.sandbox.session_process import SessionProcess
    from agentdouble.sandbox.workbench.client import Workbench


class LocalProcesses:
    """The processes of one session on this machine, started by ``kernels`` and ``starter``.

    ``Processes`` says what its methods promise.
    """

    node: str | None = None

    def __init__(
        self, session: SandboxSession, kernels: KernelPool, starter: ProcessStarter
    ) -> None:
        self.session = session
        self._pool = kernels
        self._starter = starter
        self._output_limit = starter.settings.output_limit
        self._workspace: Workspace | None = None
        self._making_workspace = asyncio.Lock()
        self._kernels: dict[str, Kernel] = {}  # by the names of their languages
        self.named_kernels = NamedKernels(self._start_named, self._output_limit, session.expire)
        self._exec_bash = ExecBash()
        self._workbench = self._on_demand("workbench", self._start_workbench)
        self._browser = self._on_demand("browser", self._start_browser)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._all() if process.alive)

    @property
    def home(self) -> Path | None:
        return None if self._workspace is None else self._workspace.home

    @property
    def directories(self) -> tuple[Path, ...]:
        return () if self._workspace is None else (self._workspace.home, self._workspace.tmp)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        return {name: kernel for name, kernel in self._kernels.items() if kernel.alive}

    def _all(self) -> tuple[SessionProcess, ...]:
        on_demand: tuple[SessionProcess | None, ...] = (
            self._workbench.process,
            self._browser.process,
        )
        others = (process for process in on_demand if process is not None)
        named = (named_kernel.kernel for named_kernel in self.named_kernels.living())
        return (*self._kernels.values(), *others, *named)

    async def execute(
        self,
        language: Language,
        code: str,
        timeout_s: float,
        cwd: str | None,
        publisher: ExecutionPublisher | None,
    ) -> ExecutionResult:
        kernel = await self.kernel(language)
        self.session.executions += 1
        async with inside(kernel, cwd):
            fault, lost = MidRunFault.armed(self.session.expire), False
            ended: ExecutionEnded = "interrupted"
            try:
                with note_step("code"):
                    result = await kernel.execute(
                        code,
                        timeout_s=timeout_s,
                        output_limit=self._output_limit,
                        fault=fault,
                        publisher=publisher,
                    )
                if not result.began:
                    self._report_loss(kernel)
                if self.session.end_reason is not None:  # which has interrupted the code
                    result = result.ended_by(self.session.end_reason)
                ended, lost = result.status, result.ends_session
                return result
            except asyncio.CancelledError:  # no answer will report that the kernel was lost
                self.note_death(kernel, "and its caller had disconnected")
                raise
            finally:
                if publisher is not None:
                    publisher.finished(ended, context_lost=lost or not kernel.alive)

    async def kernel(self, language: Language) -> Kernel:
        kernel = self._kernels.get(language.name)
        if kernel is None:
            async with self._making_workspace:
                with note_step("kernel"):
                    kernel = await self._start(language)
            self._kernels[language.name] = kernel
            self._note_start(f"its {language.display_name} kernel", kernel)
            if self.session.end_reason is not None:  # ``kill`` does not know the kernel
                await kernel.kill(self.session.end_reason)
                self.session.check_living()
            self._watch_death(kernel)
        return kernel

    async def _start_named(self, language: Language) -> Kernel:
        """Start a further kernel, which has a name on the data plane."""
        self.session.check_usable()
        async with self._making_workspace:
            kernel = await self._start(language)
        self._note_start(f"a further {language.display_name} kernel", kernel)
        try:
            self.session.check_usable()
        except SandboxError as error:  # nobody has the kernel yet, so nobody else would end it
            await kernel.kill(str(error))
            raise
        return kernel

    async def _start(self, language: Language) -> Kernel:
        """Start a kernel; the first Python kernel of a session may be a ready one.

        A ready kernel has its environment already, so a session with variables of its own cannot
        use it.
        """
        if self._workspace is None and language is languages.PYTHON and not self.session.variables:
            pooled = await self._pool.take()
            self._workspace = pooled.workspace
            return pooled.kernel
        return await self._pool.start(language, self._get_workspace(), self._all())

    def _note_start(self, name: str, process: SessionProcess) -> None:
        self.session.note_start(f"started {name}, process {process.pid}")

    def _watch_death(self, kernel: Kernel) -> None:
        kernel.late.note = self.session.log.note

        def on_death(_died: object) -> None:
            if not self.session.turn.busy:  # else whoever holds the turn reports it
                self.note_death(kernel, "while nothing ran")

        kernel.left.add_done_callback(on_death)

    def note_death(self, kernel: Kernel, circumstances: str) -> None:
        replaced = self._kernels.get(kernel.language.name) is not kernel
        if not kernel.alive and not replaced:
            self.session.lose(f"{kernel.how_it_ended()}, {circumstances}")

    def _report_loss(self, kernel: Kernel) -> None:
        """Raise CodeNotBegunError, because the kernel had ended before the code began."""
        self.note_death(kernel, "before this code began")
        reason = self.session.end_reason or kernel.how_it_ended()
        raise CodeNotBegunError(self.session.key.user_session_id, reason)

    async def drop_kernel(self, language: Language) -> None:
        if (kernel := self._kernels.get(language.name)) is not None:
            await kernel.interrupt_code()
            self._kernels.pop(language.name, None)  # first: its end is not the session's
            await kernel.kill("it was restarted")

    async def complete(self, code: str, position: int, language: Language) -> KernelCompletion:
        kernel = self._kernels.get(language.name)
        if kernel is None or not kernel.alive or not self.session.idle:
            return completions.no_completion(position)
        return await completions.complete(kernel, code, position)

    async def list_variables(self) -> Variables:
        kernel = self._kernels.get(languages.PYTHON.name)
        if kernel is None or not kernel.alive:
            return Variables("none")
        if not self.session.idle:
            return Variables("busy")
        return await listed_variables(kernel)

    async def interrupt(self) -> tuple[str, ...]:
        named = (named_kernel.kernel for named_kernel in self.named_kernels.living())
        kernels = (*self._kernels.values(), *named)
        ran = await asyncio.gather(*(kernel.interrupt_code() for kernel in kernels))
        return tuple(kernel.language.name for kernel, had in zip(kernels, ran, strict=True) if had)

    async def exec_bash(
        self, command: Mapping[str, Any], publisher: ExecutionPublisher, *, alone: bool = False
    ) -> dict[str, Any]:
        async with self.use_workbench() as workbench:
            try:
                with note_step("command"):
                    return await self._exec_bash.run(workbench, command, publisher, alone=alone)
            except WorkbenchError:
                self.session.check_usable()  # "the session has ended" is the more helpful error
                raise

    async def directory(self, path: str | None) -> str | None:
        """Return the path of a directory for the session's code, or None if ``path`` is None.

        Raises DirectoryError, and the same errors as ``use_workbench``.
        """
        if path is None:
            return None
        async with self.use_workbench() as workbench:
            answer = await workbench.post(DIRECTORY, {"path": path})
        if not answer["success"]:
            raise DirectoryError(path, answer["message"])
        resolved: str = answer["data"]
        return resolved

    @asynccontextmanager
    async def use_workbench(self) -> AsyncIterator[Workbench]:
        """Use the session's workbench; start it if none lives.

        Raises WorkbenchError, InstanceEndedError, and SandboxError if the session is paused.
        """
        self.session.check_usable()
        with self.session.working():
            yield await self._workbench.living()

    async def browser(self) -> Browser:
        """Return the session's browser; start it if none lives (SBX-11).

        Raises InstanceEndedError, BrowserError and SandboxError.
        """
        return await self._browser.living()

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, SCOPE_KEY: self}, receive, send)

    def _on_demand(self, name: str, start: Callable[[], Awaitable[Kind]]) -> OnDemandProcess[Kind]:
        def note(process: Kind) -> None:
            self._note_start(f"its {name}", process)

        async def begin() -> Kind:
            process = await start()
            if self.session.end_reason is not None:  # ``kill`` does not know it
                await process.kill(self.session.end_reason)
            return process

        return OnDemandProcess(begin, self.session.check_usable, note)

    async def _start_workbench(self) -> Workbench:
        async with self._making_workspace:
            with note_step("workbench"):
                return await self._starter.workbench(self._get_workspace(), self._all())

    async def _start_browser(self) -> Browser:
        # released before the browser starts, so that kernels need not wait for it
        async with self._making_workspace:
            workspace = self._get_workspace()
        return await self._starter.browser(workspace, self._all())

    def _get_workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._starter.workspace(self.session.variables)
        return self._workspace

    async def snapshot(self) -> KernelSnapshot:
        omitted = tuple(self._missing_from_snapshots())
        with self._reporting_end():
            kernel = await self.kernel(languages.PYTHON)
            try:
                snapshot = await self._pool.snapshot(kernel, self._get_workspace())
            finally:
                self.note_death(kernel, "while a snapshot was being taken")
        return replace(snapshot, omitted=(*snapshot.omitted, *omitted))

    async def last_snapshot(self) -> LastSnapshot:
        if self._workspace is None:
            return EmptySnapshot()
        omitted = tuple(self._missing_from_snapshots())
        # What is kept is taken out first, so that ``kill`` and ``remove`` leave it alone.
        workspace, self._workspace = self._workspace, None
        kernel = self._kernels.get(languages.PYTHON.name)
        only_files = ledger.choose("U-SNAPSHOT-CARRIES") == "files"
        if kernel is None or not kernel.alive or only_files:
            return FilesSnapshot(workspace, omitted=omitted)
        del self._kernels[languages.PYTHON.name]
        kernel.let_go()
        sleeping = SleepingKernel(kernel, workspace, self._pool, omitted)
        sleeping.stop()
        return sleeping

    def _missing_from_snapshots(self) -> Iterator[str]:
        """Yield the parts of the session that a snapshot does not contain."""
        for kernel in self._kernels.values():
            if kernel.language is not languages.PYTHON:
                yield f"the {kernel.language.display_name} kernel"
        if self.named_kernels.living():
            yield f"{len(self.named_kernels)} further kernels"
        if self._workbench.process is not None and self._workbench.process.alive:
            yield "terminals and commands in bash"
        if self._browser.process is not None and self._browser.process.alive:
            yield "the browser"

    async def return_to(self, snapshot: Snapshot) -> None:
        kernel: Kernel | None = None
        with self._reporting_end():
            if isinstance(snapshot, KernelSnapshot):
                copy = await self._pool.copy(snapshot)
                kernel, workspace = copy.kernel, copy.workspace
            elif isinstance(snapshot, SleepingKernel):
                woken = await snapshot.resume()
                kernel, workspace = woken.kernel, woken.workspace
            elif isinstance(snapshot, FilesSnapshot | ArchivedFiles):
                workspace = await self._copied_files(snapshot)
            else:
                raise SnapshotRefusedError("it is on a node, and the session is not")
            # A cancelled caller may not leave half a swap, nor a copy that nobody ends.
            await run_to_completion(self._swap(workspace, kernel))
            self.session.check_usable()

    async def _copied_files(self, snapshot: FilesSnapshot | ArchivedFiles) -> Workspace:
        workspace = self._starter.workspace(self.session.variables)
        try:
            await run_in_thread(lambda: snapshot.copy_to(workspace))
        except BaseException as error:
            await run_in_thread(workspace.remove)
            if isinstance(error, OSError):
                raise SnapshotRefusedError(error.strerror or str(error)) from error
            raise
        return workspace

    @contextmanager
    def _reporting_end(self) -> Iterator[None]:
        """Report failures that the end of the session has caused as its end.

        ``kill`` may come at any step of a snapshot, and each step fails in its own way then.
        """
        try:
            yield
        except Exception:
            self.session.check_living()
            raise

    async def _swap(self, new: Workspace, copied: Kernel | None) -> None:
        # With these locks nothing is starting. With the session's turn, which the caller holds, no
        # code runs in a language's kernel; what runs in other processes ends here.
        async with self._workbench.turn, self._browser.turn, self._making_workspace:
            if self.session.end_reason is not None:  # ``kill`` does not know the copy
                if copied is not None:
                    await copied.kill(self.session.end_reason)
                await run_in_thread(new.remove)
                return
            before, workspace = self._all(), self._workspace
            # Replace first: the death of a replaced kernel is not the session's end.
            self._kernels, self._workspace = {}, new
            self._workbench.process = self._browser.process = None
            self._exec_bash = ExecBash()
            if copied is not None and ledger.choose("U-SNAPSHOT-CARRIES") == "files":
                await copied.kill("only the files of a snapshot are kept")
            elif copied is not None:
                self._adopt(copied)
            reason = "its session returned to a snapshot"
            await asyncio.gather(*(process.kill(reason) for process in before))
            await self.named_kernels.close_all()
            if workspace is not None:
                await run_in_thread(workspace.remove)

    def _adopt(self, copied: Kernel) -> None:
        self._kernels[languages.PYTHON.name] = copied
        self.session.note_start(f"has a copy of a snapshot's kernel, process {copied.pid}")
        self._watch_death(copied)

    async def kill(self, reason: str) -> None:
        await asyncio.gather(*(process.kill(reason) for process in self._all()))

    async def remove(self) -> None:
        async with self._workbench.turn, self._browser.turn, self._making_workspace:
            if self._workspace is not None:  # in a thread: there may be a million files
                await run_in_thread(self._workspace.remove)
