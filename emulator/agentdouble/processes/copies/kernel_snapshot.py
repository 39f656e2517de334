"""A snapshot of a living Python kernel: its template, and the files of its session."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from agentdouble.core.threads import run_in_thread
from agentdouble.errors import SnapshotRefusedError
from agentdouble.processes import capacity, usage
from agentdouble.processes.copies.template_channel import Template
from agentdouble.processes.files_snapshot import copy_files, size_of
from agentdouble.processes.fork_server.client import ForkServerGoneError
from agentdouble.processes.fork_server.confinement import give
from agentdouble.processes.fork_server.protocol import COPY, GO, TEMPLATE_REQUEST, Mount
from agentdouble.processes.launcher import ForkPlan
from agentdouble.processes.workspace import Workspace

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkedProcess, ForkServerClient
    from agentdouble.processes.fork_server.protocol import ForkRequest

_PATIENCE_S = 10.0
_LONGEST_ADDRESS = 107  # bytes of a Unix socket's path
_NEEDED = (
    "it needs the measures files and pid_namespace, with which a copy has files and processes of "
    "its own: `agentdouble doctor` says what they need here"
)


class LivingKernel(Protocol):
    """A kernel of a session; ``plan`` says how it was forked, None if it was not."""

    plan: ForkPlan | None
    run: Path

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    def how_it_ended(self) -> str: ...

    async def ask(
        self, msg_type: str, content: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class CopyPlan(ForkPlan):
    """How a template forks a copy of a kernel; ``mount_files`` gives the copy its own files.

    ``files`` is done when these files are there.
    """

    mount_files: Callable[[ForkedProcess], Awaitable[None]]
    home_of_first: str
    files: asyncio.Future[None]

    async def fork(self, request: ForkRequest, *descriptors: int) -> ForkedProcess:
        """Fork a copy, and let it continue when it has its own files."""
        loop = asyncio.get_running_loop()
        gate, remote = socket.socketpair()
        with gate:
            gate.setblocking(False)
            with remote:
                process = await self.server.fork(request, remote.fileno())
            try:
                # The copy has the only other end now, so its death ends this wait.
                if not await loop.sock_recv(gate, 1):
                    raise OSError("the copy ended before it had its files")
                await self.files  # they have been copied while the process was forked
                if self.confinement is not None:
                    if self.confinement["uid"] is not None:
                        give(self.confinement["run"], self.confinement["uid"])
                    await self.mount_files(process)
                await loop.sock_sendall(gate, GO)
            except BaseException:
                process.send_signal(signal.SIGKILL)
                raise
            return process


@dataclass(frozen=True, eq=False)
class KernelSnapshot:
    """A snapshot of a kernel, from which copies are forked.

    ``files`` are copies of the session's files, ``size`` bytes in total; ``source`` is their
    origin. ``omitted`` names what no copy has. ``root`` is the fork server that gives copies their
    files.
    """

    template: Template
    plan: ForkPlan
    source: Workspace
    run: Path
    files: Workspace
    size: int
    omitted: tuple[str, ...]
    root: ForkServerClient
    home_of_first: str

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when its template has ended."""
        future: asyncio.Future[None] = self.template.gone
        return future

    ending: ClassVar[str] = "the process that held it ended"

    async def discard(self) -> None:
        """Remove the files; the template ends with its last copy."""
        self.template.release()
        await run_in_thread(self.files.remove)

    def plan_copy(self, workspace: Workspace, run: Path, files: asyncio.Future[None]) -> CopyPlan:
        """Return how to fork a copy into a workspace; ``files`` is done when it has the files."""
        target = {"home": str(workspace.home), "tmp": str(workspace.tmp), "run": str(run)}
        moved = {str(self.run): str(run)}
        confinement: Mapping[str, Any] | None = None
        if self.plan.confinement is None:
            moved |= {str(self.source.home): target["home"], str(self.source.tmp): target["tmp"]}
        else:
            # A template is a fork of a confined kernel, which has no rights of root any more. So its
            # copies get their namespaces as those of an ordinary user do.
            confinement = {**self.plan.confinement, **target, "namespaces": "user"}
        root = str(workspace.root)
        request = Mount(target["home"], target["tmp"], target["run"], root, self.home_of_first)
        return CopyPlan(
            server=self.template,
            kernel=COPY,
            config={**self.plan.config, "moved": moved},
            limits={},
            confinement=confinement,
            mount_files=lambda process: self.root.mount_files(request, process),
            home_of_first=self.home_of_first,
            files=files,
        )


async def take(
    kernel: LivingKernel, source: Workspace, files: Workspace, root: ForkServerClient
) -> KernelSnapshot:
    """Fork a template from an idle kernel, and copy the files of its session to ``files``.

    Raises SnapshotRefusedError; then the caller removes ``files``.
    """
    plan, run = kernel.plan, kernel.run
    if plan is None:
        raise SnapshotRefusedError("only kernels of the fork server can be copied: Linux")
    if not kernel.alive:
        raise SnapshotRefusedError(kernel.how_it_ended())
    _check_confinement(plan.confinement)
    template, omitted = await _fork_template(kernel, run, plan)
    source.hold()  # copies mount their own directories over these
    template.gone.add_done_callback(lambda _: source.release())
    try:
        home = str(source.home) if plan.confinement is None else plan.confinement["home"]
        # Nothing is awaited between the template's arrival and this. When a kernel ends, its fork
        # server ends all that the kernel has left, except templates that it was told to keep.
        plan.server.keep_template(template.process, home)
        _raise_process_limit(kernel, template, plan.confinement)
        await run_in_thread(lambda: copy_files(source, files))
        size = await run_in_thread(lambda: size_of(files))
    except BaseException as error:
        template.release()
        if isinstance(error, OSError):
            raise SnapshotRefusedError(error.strerror or str(error)) from error
        raise
    first = plan.home_of_first if isinstance(plan, CopyPlan) else home
    return KernelSnapshot(template, plan, source, run, files, size, omitted, root, first)


def _check_confinement(confinement: Mapping[str, Any] | None) -> None:
    if confinement is None:
        return
    if confinement["namespaces"] is None or confinement["processes"] != "own":
        raise SnapshotRefusedError(_NEEDED)


async def _fork_template(
    kernel: LivingKernel, run: Path, plan: ForkPlan
) -> tuple[Template, tuple[str, ...]]:
    with _listening(run, (plan.confinement or {}).get("uid")) as (socket_, address):
        request = {"address": address, "own_view": plan.confinement is not None}
        answer = await kernel.ask(TEMPLATE_REQUEST, request, _PATIENCE_S)
        if answer is None or "omitted" not in answer:
            reason = (answer or {}).get("evalue", "it is running code or does not answer")
            raise SnapshotRefusedError(f"the kernel cannot be copied now: {reason}")
        try:
            template = await asyncio.wait_for(Template.accepted(socket_), _PATIENCE_S)
        except (ForkServerGoneError, OSError, asyncio.TimeoutError) as error:
            raise SnapshotRefusedError("its template ended or does not answer") from error
    if usage.parent_of(template.process.pid) != kernel.pid:  # code of the session connected instead
        template.release()
        raise SnapshotRefusedError("another process of the session answered for its template")
    return template, tuple(answer["omitted"])


def _raise_process_limit(
    kernel: LivingKernel, template: Template, confinement: Mapping[str, Any] | None
) -> None:
    """Raise a session's process limit, because Linux counts its copies' processes too.

    Each copy also has its own limit. Ordinary users, and root in most containers, may not raise
    limits; then a session and its copies share ``process_limit``.
    """
    if confinement is None or confinement["uid"] is None or confinement["process_limit"] is None:
        return
    limit = capacity.family_limit(confinement["process_limit"])
    for pid in (kernel.pid, template.process.pid):
        if pid is not None:
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, (limit, limit))


@contextmanager
def _listening(run: Path, uid: int | None) -> Iterator[tuple[socket.socket, str]]:
    """Listen on a new socket in the kernel's directory, to which that kernel can connect."""
    address = str(run / f"t{secrets.token_hex(4)}")
    if len(address) > _LONGEST_ADDRESS:
        raise SnapshotRefusedError(f"the path of its socket is too long: {address}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.setblocking(False)
        listening.bind(address)
        try:
            if uid is not None:  # code of the session may replace the socket by a link
                os.chown(address, uid, uid, follow_symlinks=False)
            listening.listen(1)
            yield listening, address
        finally:
            Path(address).unlink(missing_ok=True)
