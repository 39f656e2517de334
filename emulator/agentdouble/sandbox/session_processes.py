"""The processes of a session, wherever they run: what each kind of them promises."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentdouble.sandbox.completions import KernelCompletion
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.variables import Variables

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agentdouble.processes.workspace import Workspace
    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.output_feed import ExecutionPublisher


class Snapshot(Protocol):
    """A snapshot of a session's kernel and files, ``size`` bytes, which is here or on a node.

    ``omitted`` names what no copy has. ``gone`` is done when it is lost, and ``ending`` says how.
    ``files`` are its files on this machine, if it has any there.
    """

    @property
    def files(self) -> Workspace | None: ...

    @property
    def size(self) -> int: ...

    @property
    def omitted(self) -> tuple[str, ...]: ...

    @property
    def gone(self) -> asyncio.Future[None]: ...

    @property
    def ending(self) -> str: ...

    async def discard(self) -> None: ...


class LastSnapshot(Snapshot, Protocol):
    """A snapshot of a session that has ended."""

    async def measure(self) -> int:
        """Return the memory and the files that it uses, in bytes; ``size`` is known then.

        Raises OSError and TooDeepError.
        """


class EmptySnapshot:
    """A snapshot of a session that has never started a process: nothing is kept."""

    files: Workspace | None = None
    size = 0
    omitted: tuple[str, ...] = ()
    ending = ""

    def __init__(self) -> None:
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def measure(self) -> int:
        """Return 0."""
        return 0

    async def discard(self) -> None:
        """Do nothing: there is nothing to discard."""


class Processes(Protocol):
    """The processes and files of one session: ``LocalProcesses`` or ``NodeProcesses``.

    Nothing runs before it is needed. Methods that say so are called in the session's turn. Those
    that start something raise InstanceEndedError if the session has ended, or ends during the
    start, SandboxError if it is paused, and ResourceExhaustedError if the machine has no room. If
    the session's state is lost and no result says so, they call ``SandboxSession.lose``.

    An error of a node is a SandboxError with the message, code and status of the error that is
    named here. If a node's answer is lost, the session ends, and the code is InternalError.Node.
    """

    @property
    def node(self) -> str | None:
        """The name of the node on which they run, or None for this machine."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the living processes on their machine; none before the first has started."""

    @property
    def home(self) -> Path | None:
        """The directory of the session's own files on that machine; None before the first process."""

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories on this machine that the session's code writes to."""

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """The living kernels that notebooks can use, by the names of their languages."""

    async def execute(
        self,
        language: Language,
        code: str,
        timeout_s: float,
        cwd: str | None,
        publisher: ExecutionPublisher | None,
    ) -> ExecutionResult:
        """Run code in the kernel of a language, in the session's turn; start it if there is none.

        An error of the code is a result, and so is a timeout: code that still runs 2 s after its
        interrupt is killed. If the kernel or its node ends while the code runs, the result has
        ``context_lost``, and the caller ends the session. Outputs beyond ``output_limit`` are cut.
        ``cwd`` is a directory for this execution only. ``publisher`` gets what ``output_feed``
        describes, with ``finished`` once, as the last. If the caller is cancelled, the code is
        interrupted before this returns. Raises KernelStartError, and DirectoryError.
        """

    async def exec_bash(
        self, command: Mapping[str, Any], publisher: ExecutionPublisher, *, alone: bool = False
    ) -> dict[str, Any]:
        """Run a command in the session's bash and return the public sandbox's envelope (SBX-09).

        ``command`` is a body of ``POST /v1/bash/exec``. The command sees the files of ``execute``;
        U-EXECBASH-STATE decides about its own state, unless it runs ``alone``. A command that
        fails, or still runs at its timeout, is also returned and not raised. Raises SandboxError if
        the workbench cannot start or its answer is lost.
        """

    async def complete(self, code: str, position: int, language: Language) -> KernelCompletion:
        """Complete code with an idle kernel; this starts nothing and does not wait for code.

        Return no matches if there is no such kernel, code runs or waits, the session is paused, or
        the answer takes more than a second.
        """

    async def list_variables(self) -> Variables:
        """Return the variables of the Python kernel; this starts nothing and waits for no code."""

    async def interrupt(self) -> tuple[str, ...]:
        """Interrupt the code that kernels run; return the names of their languages.

        Return when the code has ended, or after 2 s. Code that waits and bash are not interrupted.
        """

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the Python kernel and the files, in the session's turn.

        A kernel is started if there is none. Other kernels, bash and the browser are named in
        ``omitted``. Raises SnapshotRefusedError, and the errors of a kernel's start.
        """

    async def last_snapshot(self) -> LastSnapshot:
        """Take a snapshot of a session that has ended, before ``kill``; its turn is idle.

        Nothing is started: without a living Python kernel, it has only the files. Raises
        SandboxError.
        """

    async def return_to(self, snapshot: Snapshot) -> None:
        """Replace processes and files with those of a snapshot, in the session's turn.

        If it fails, nothing has been replaced. Raises SnapshotRefusedError, including for a
        snapshot that cannot be copied to where these processes are, and the errors of a kernel's
        start.
        """

    async def kernel(self, language: Language) -> Kernel:
        """Return the kernel of ``execute`` for notebooks, in the session's turn; start it.

        Raises KernelStartError, and NotBuiltError for processes on a node.
        """

    async def drop_kernel(self, language: Language) -> None:
        """End a kernel but not its session: the next use starts another. Code is interrupted."""

    def note_death(self, kernel: Kernel, circumstances: str) -> None:
        """End the session if this kernel of it has died and was not replaced.

        ``circumstances`` end the sentence that says why.
        """

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the session's data plane: ``app`` does so where the processes are.

        For ``app``, the scope has them as ``SCOPE_KEY``.
        """

    async def kill(self, reason: str) -> None:
        """Kill all processes; return when those that ran have ended.

        The session has been refused before, so processes that are starting end by themselves. A
        second call does nothing.
        """

    async def remove(self) -> None:
        """Remove the files after ``kill``, when nothing holds the session's turn any more."""


SCOPE_KEY = "agentdouble.processes"
