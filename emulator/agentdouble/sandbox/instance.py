"""One session's sandbox: its kernels, its workspace, its deadline."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agentdouble.core import ledger
from agentdouble.core.threads import run_in_thread
from agentdouble.errors import (
    DirectoryError,
    InstanceEndedError,
    SnapshotRefusedError,
    WorkbenchError,
)
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox import languages, questions, session_process
from agentdouble.sandbox.exec_bash import ExecBash
from agentdouble.sandbox.kernel import Kernel, MidRunFault
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.lifetime import Lifetime
from agentdouble.sandbox.named_kernels import NamedKernels, inside
from agentdouble.sandbox.questions import Completion, Variables, listed_variables
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.turn import ExecutionTurn
from agentdouble.sandbox.workbench.wire import DIRECTORY

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from agentdouble.processes.copies.kernel_snapshot import KernelSnapshot, Snapshot
    from agentdouble.processes.watch import Used
    from agentdouble.sandbox.browser.browser import Browser
    from agentdouble.sandbox.ended_instances import SessionEvents
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.ready_kernels import PooledKernel
    from agentdouble.sandbox.session_process import SessionProcess
    from agentdouble.sandbox.workbench.client import Workbench


def ends_session(result: ExecutionResult) -> bool:
    """Return whether an execution ends its session: by a lost context, or by the ledger."""
    timed_out = result.status == "timeout"
    return result.context_lost or (timed_out and ledger.choose("U-EXEC-TIMEOUT") == "instance-lost")


class Instance:
    """One session's sandbox: a workspace and a kernel for each language used."""

    def __init__(
        self,
        key: session_process.InstanceKey,
        *,
        created_at: dt.datetime,
        ttl: dt.timedelta,
        kernels: KernelPool,
        output_limit: int,
        on_lost: Callable[[Instance, str], None],
        expire: Callable[[Instance], Awaitable[None]],
        on_change: Callable[[Instance], None],
        events: SessionEvents,
        variables: Mapping[str, str],
        log: session_process.SessionLog,
    ) -> None:
        self.id = f"s-{secrets.token_hex(10)}"
        self.token = secrets.token_urlsafe(24)  # a client shows it to the data plane to enter
        self.key = key
        self.created_at = created_at
        self.lifetime = Lifetime(created_at, ttl)
        self.executions = 0
        self.used: Used | None = None  # when it was measured, at most 5 s ago
        self.variables = variables
        self.log = log
        self._source = kernels
        self._output_limit = output_limit
        self._on_lost = on_lost
        self._expire: Callable[[], Awaitable[None]] = lambda: expire(self)
        self._on_change = on_change  # called when it is used, becomes idle or starts a process
        self._workspace: Workspace | None = None
        self._kernels: dict[str, Kernel] = {}
        self.named_kernels = NamedKernels(self._start_further_kernel, output_limit, self._expire)
        self._workbench = self._on_demand("workbench", self._start_workbench)
        self._exec_bash = ExecBash()
        self._browser = self._on_demand("browser", self._start_browser)
        self._turn = ExecutionTurn(key.user_session_id, lambda now: events.publish(self, now))
        self._making_workspace = asyncio.Lock()
        self._ended: str | None = None
        self.processes_gone = asyncio.Event()  # set when it has ended and all of its processes too

    @property
    def node(self) -> str | None:
        """The name of the node on which the session's processes run, or None for this machine."""
        return None

    @property
    def data_plane(self) -> ASGIApp | None:
        """The application that answers for the session's data plane, None for the double's own."""
        return None

    @property
    def busy(self) -> bool:
        """Whether code runs or waits for its turn."""
        return self._turn.busy

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count as being at work inside, which may defer the end (U-TTL-DURING)."""
        try:
            with self.lifetime.working():
                self._on_change(self)
                yield
        finally:
            if not self.lifetime.at_work:
                self._on_change(self)

    @asynccontextmanager
    async def _taking_turns(self) -> AsyncIterator[None]:
        with self.working():
            async with self._turn.taken():
                yield

    @property
    def home(self) -> Path | None:
        """The directory of the session's own files, or None before the session has run anything."""
        return None if self._workspace is None else self._workspace.home

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories that the session's code writes to."""
        return () if self._workspace is None else (self._workspace.home, self._workspace.tmp)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the instance's living kernels, its workbench and its browser."""
        living = (process.pid for process in self._processes() if process.alive)
        return tuple(pid for pid in living if pid is not None)

    async def execute(
        self,
        code: str,
        language: str,
        timeout_s: float,
        cwd: str | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code in the session, one execution at a time, in arrival order (SBX-02).

        ``cwd`` is a directory of the session, for this execution only: see ``directory``.
        ``publisher`` publishes the outputs while the code runs.

        Raises KernelStartError, InstanceEndedError if the instance ended while the code waited
        for its turn, and SandboxError for an unknown language, or if the session is paused or
        busy.
        """
        kind = languages.find(language)
        self._turn.check_free()
        async with self._taking_turns():
            self.check_usable()
            return await self._run(kind, code, timeout_s, cwd, publisher)

    async def _run(
        self,
        language: Language,
        code: str,
        timeout_s: float,
        cwd: str | None,
        publisher: ExecutionPublisher | None,
    ) -> ExecutionResult:
        kernel = await self._kernel(language)
        self.executions += 1
        limits: Any = {"timeout_s": timeout_s, "output_limit": self._output_limit}
        async with inside(kernel, cwd):
            fault, lost = MidRunFault.armed(self._expire), False
            ended: ExecutionEnded = "interrupted"
            try:
                result = await kernel.execute(code, **limits, fault=fault, publisher=publisher)
                ended, lost = result.status, ends_session(result)
                return result
            except asyncio.CancelledError:  # no answer will report that the kernel was lost
                if self._ended is None and not kernel.alive:
                    self._on_lost(self, f"{kernel.how_it_ended()}, and its caller had disconnected")
                raise
            finally:
                if publisher is not None:
                    publisher.finished(ended, context_lost=lost or not kernel.alive)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The living kernels that InvokeTool uses, by the names of their languages."""
        return {name: kernel for name, kernel in self._kernels.items() if kernel.alive}

    async def kernel(self, language: str) -> Kernel:
        """Return the kernel that InvokeTool uses for a language; start it if there is none.

        Raises the errors of ``execute``.
        """
        async with self._taking_turns():
            self.check_usable()
            return await self._kernel(languages.find(language))

    async def restart_kernel(self, language: str) -> Kernel:
        """Replace a kernel by a new one; code of InvokeTool that runs in it is interrupted."""
        name = languages.find(language).name
        if (kernel := self._kernels.get(name)) is not None:
            await kernel.interrupt_code()
            self._kernels.pop(name, None)  # first: its end is not the session's
            await kernel.kill("it was restarted")
        return await self.kernel(language)

    @asynccontextmanager
    async def notebook_turn(self, kernel: Kernel) -> AsyncIterator[None]:
        """Hold the session's turn while a client of the kernel runs code (SBX-02)."""
        self._turn.check_free()
        async with self._taking_turns():
            self.check_usable()
            self.executions += 1
            yield
        replaced = self._kernels.get(kernel.language.name) is not kernel
        if self._ended is None and not kernel.alive and not replaced:
            self._on_lost(self, f"{kernel.how_it_ended()}, while a notebook's code ran")

    async def complete(self, code: str, position: int, language: str) -> Completion:
        """Complete code with the session's kernel for that language.

        Return no matches if there is no such kernel or it is not idle. This does not wait, and
        does not count as use of the session. Raises SandboxError for an unknown language.
        """
        kernel = self._kernels.get(languages.find(language).name)
        free = (
            kernel is not None
            and kernel.alive
            and not self.busy
            and self.lifetime.state == "active"
        )
        if kernel is None or not free:
            return questions.no_completion(position)
        return await questions.complete(kernel, code, position)

    async def list_variables(self) -> Variables:
        """Return the variables of the session's Python kernel.

        This does not wait for code that runs, and does not count as use of the session.
        """
        kernel = self._kernels.get(languages.PYTHON.name)
        if kernel is None or not kernel.alive:
            return Variables("none")
        if self.busy or self.lifetime.state != "active":
            return Variables("busy")
        return await listed_variables(kernel)

    async def interrupt(self) -> tuple[str, ...]:
        """Interrupt the code that the session's kernels run; return the names of their languages.

        A command in bash is not interrupted.
        """
        named = (named_kernel.kernel for named_kernel in self.named_kernels.living())
        kernels = (*self._kernels.values(), *named)
        ran = await asyncio.gather(*(kernel.interrupt_code() for kernel in kernels))
        return tuple(kernel.language.name for kernel, had in zip(kernels, ran, strict=True) if had)

    async def exec_bash(
        self, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        """Run a command in the session's bash and return the public sandbox's envelope (SBX-09).

        ``command`` is a body of ``POST /v1/bash/exec``; ``publisher`` publishes its output while
        it runs. Raises the same errors as ``use_workbench``.
        """
        async with self.use_workbench() as workbench:
            try:
                return await self._exec_bash.run(workbench, command, publisher)
            except WorkbenchError:
                self.check_usable()  # "the instance has ended" is the more helpful error
                raise

    async def directory(self, path: str | None) -> str | None:
        """Return the path of a directory for the session's code, or None for None.

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

        Raises WorkbenchError, NotBuiltError, InstanceEndedError, and SandboxError if it is paused.
        """
        self.check_usable()
        with self.working():
            yield await self._workbench.living()

    async def browser(self) -> Browser:
        """Return the session's browser; start it if none lives (SBX-11).

        Raises NotBuiltError, InstanceEndedError, BrowserError and SandboxError.
        """
        return await self._browser.living()

    def _on_demand(
        self, name: str, start: Callable[[], Awaitable[session_process.Kind]]
    ) -> session_process.OnDemandProcess[session_process.Kind]:
        def note(process: session_process.Kind) -> None:
            self._note_start(f"started its {name}, process {process.pid}")

        async def begin() -> session_process.Kind:
            process = await start()
            if self._ended is not None:  # it ended meanwhile
                await process.kill(self._ended)
            return process

        return session_process.OnDemandProcess(begin, self.check_usable, note)

    async def _start_workbench(self) -> Workbench:
        async with self._making_workspace:
            workspace = self._get_workspace()
            return await self._source.workbench(workspace, self._processes())

    async def _start_browser(self) -> Browser:
        async with self._making_workspace:
            workspace = self._get_workspace()
        return await self._source.browser(workspace, self._processes())

    def _get_workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._source.workspace(self.variables)
        return self._workspace

    @property
    def end_reason(self) -> str | None:
        """The reason why the instance has ended, or None while it lives."""
        return self._ended

    def check_usable(self) -> None:
        """Raise InstanceEndedError, or SandboxError if the instance is paused."""
        if self._ended is not None:
            raise InstanceEndedError(self.key.user_session_id, self._ended)
        if self.lifetime.state == "paused":
            raise session_process.paused_error(self.key.user_session_id)

    async def _kernel(self, language: Language) -> Kernel:
        kernel = self._kernels.get(language.name)
        if kernel is None:
            async with self._making_workspace:
                kernel = await self._start(language)
            self._kernels[language.name] = kernel
            self._note_start(f"started its {language.display_name} kernel, process {kernel.pid}")
            if self._ended is not None:  # it ended while its kernel started
                await kernel.kill(self._ended)
                raise InstanceEndedError(self.key.user_session_id, self._ended)
            kernel.died.add_done_callback(lambda _: self._on_kernel_died(kernel))
        return kernel

    def _on_kernel_died(self, kernel: Kernel) -> None:
        """Report the end of a kernel, unless it was replaced or an execution reports it."""
        replaced = self._kernels.get(kernel.language.name) is not kernel
        if self._ended is None and not self.busy and not replaced:
            self._on_lost(self, f"{kernel.how_it_ended()}, while nothing ran")

    def _note_start(self, event: str) -> None:
        self.log.note(event)
        self._on_change(self)

    def _processes(self) -> tuple[SessionProcess, ...]:
        on_demand: tuple[SessionProcess | None, ...] = (
            self._workbench.process,
            self._browser.process,
        )
        others = (kernel for kernel in on_demand if kernel is not None)
        named = (named_kernel.kernel for named_kernel in self.named_kernels.living())
        return (*self._kernels.values(), *others, *named)

    async def _start_further_kernel(self, language: Language) -> Kernel:
        """Start a further kernel, for the data plane."""
        self.check_usable()
        async with self._making_workspace:
            kernel = await self._start(language)
        self._note_start(f"started a further {language.display_name} kernel, process {kernel.pid}")
        if self._ended is not None:  # it ended while its kernel started
            await kernel.kill(self._ended)
        self.check_usable()
        return kernel

    async def _start(self, language: Language) -> Kernel:
        """Start a kernel; the first Python kernel of a session may be a ready one.

        A ready kernel has its environment already, so a session with variables of its own cannot
        use it.
        """
        if self._workspace is None and language is languages.PYTHON and not self.variables:
            pooled = await self._source.take()
            self._workspace = pooled.workspace
            return pooled.kernel
        return await self._source.start(language, self._get_workspace(), self._processes())

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the Python kernel, which is started if there is none, and the files.

        Raises SnapshotRefusedError, and the errors of a kernel's start.
        """
        self.check_at_rest()
        async with self._taking_turns():
            with self._reporting_end():
                return await self._snapshot(await self._kernel(languages.PYTHON))

    async def _snapshot(self, kernel: Kernel) -> KernelSnapshot:
        try:
            return await self._source.snapshot(kernel, self._get_workspace())
        finally:
            if self._ended is None and not kernel.alive:  # no execution reports it
                self._on_lost(self, f"{kernel.how_it_ended()}, while a snapshot was being taken")

    async def return_to(self, snapshot: Snapshot) -> None:
        """Replace the processes and files with those of a snapshot.

        If the snapshot cannot be copied, nothing is replaced. Raises SnapshotRefusedError if the
        session ends meanwhile, and the errors of a kernel's start.
        """
        async with self._taking_turns():
            with self._reporting_end():
                self.check_usable()
                copy = await self._source.copy(cast("KernelSnapshot", snapshot))
                await session_process.run_to_completion(self._swap(copy))
                self.check_usable()

    @contextmanager
    def _reporting_end(self) -> Iterator[None]:
        """Turn failures caused by the end of the session into SnapshotRefusedError."""
        try:
            yield
        except Exception as error:
            if self._ended is not None:
                raise _terminating(self._ended) from error
            raise

    async def _swap(self, copy: PooledKernel) -> None:
        async with self._workbench.turn, self._browser.turn, self._making_workspace:
            if self._ended is not None:  # ``end`` does not know the copy
                await copy.kernel.kill(self._ended)
                await run_in_thread(copy.workspace.remove)
                return
            before, workspace = self._processes(), self._workspace
            self._kernels, self._workspace = {}, copy.workspace
            self._workbench.process = self._browser.process = None
            self._exec_bash = ExecBash()
            if ledger.choose("U-SNAPSHOT-CARRIES") == "files":
                await copy.kernel.kill("only the files of a snapshot are kept")
            else:
                self._adopt(copy.kernel)
            reason = "its session returned to a snapshot"
            await asyncio.gather(*(kernel.kill(reason) for kernel in before))
            await self.named_kernels.close_all()
            if workspace is not None:
                await run_in_thread(workspace.remove)

    def _adopt(self, copied: Kernel) -> None:
        self._kernels[languages.PYTHON.name] = copied
        self._note_start(f"has a copy of a snapshot's kernel, process {copied.pid}")
        copied.died.add_done_callback(lambda _: self._on_kernel_died(copied))

    def check_at_rest(self) -> None:
        """Raise SnapshotRefusedError if the session has ended, is paused or is running code."""
        if self._ended is not None:
            raise _terminating(self._ended)
        if self.lifetime.state == "paused":
            raise SnapshotRefusedError(
                "the session is paused: resume it first", "InvalidSnapshot.InstancePaused"
            )
        if self.busy:
            raise SnapshotRefusedError(
                "code of the session runs or waits for its turn: wait for its end, or interrupt it",
                "InvalidSnapshot.InstanceBusy",
            )

    def missing_from_snapshots(self) -> Iterator[str]:
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

    def refuse(self, reason: str) -> None:
        """Refuse all executions from now on, also those that wait for their turn."""
        if self._ended is None:
            self._ended = reason

    async def end(self, reason: str) -> None:
        """Kill the processes and remove the files; return when that is done."""
        self.refuse(reason)
        await asyncio.gather(*(process.kill(reason) for process in self._processes()))
        self.processes_gone.set()
        async with (
            self._turn.over(),
            self._workbench.turn,
            self._browser.turn,
            self._making_workspace,
        ):
            # processes that were starting meanwhile have ended by now
            if self._workspace is not None:  # in a thread: there may be a million files
                await run_in_thread(self._workspace.remove)


def _terminating(reason: str) -> SnapshotRefusedError:
    return SnapshotRefusedError(
        f"the session has ended: {reason}", "InvalidSnapshot.InstanceTerminating"
    )
