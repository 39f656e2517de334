"""Starts processes for one double: forks of a fork server, or programs on systems without one.

A double has a launcher for the kernels of its sessions and one for the instances of its runtimes.
Each has a fork server of its own: one has Jupyter in its memory, the other is smaller.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from agentdouble.processes import isolation
from agentdouble.processes.fork_server.client import ForkServerClient, ForkServerGoneError
from agentdouble.processes.fork_server.protocol import KERNELS, ForkRequest
from agentdouble.processes.workspace import Workspace

if sys.platform == "linux":
    from agentdouble.processes.fork_server import view

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkChannel, ForkedProcess
    from agentdouble.processes.isolation import Isolation

STDERR = "stderr"  # the file in its directory to which a kernel writes errors until it is ready
T = TypeVar("T")


class StartedProcess(Protocol):
    """A forked or spawned process with all the processes that it starts."""

    pid: int

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done when all have ended; the first process's exit code, or None if unknown."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the first process if it is alive; SIGKILL goes to all."""

    def has_ended(self) -> bool:
        """Return whether the first process has ended, even if ``exited`` is not done yet."""

    async def end(self) -> None:
        """Kill all; return when they have ended."""


@dataclass(frozen=True)
class ForkPlan:
    """How a process of a session is forked."""

    server: ForkChannel
    kernel: str
    config: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, int]
    confinement: Mapping[str, Any] | None

    def readable(self, run: str) -> Sequence[str]:
        """Return the directories of this machine that the process can read; ``run`` is its own."""
        rules = self.confinement or {}
        if sys.platform == "linux" and (rules.get("namespaces") or rules.get("landlock")):
            return view.readable(rules["visible"], run)
        return ("/",)

    async def fork(self, request: ForkRequest, *descriptors: int) -> ForkedProcess:
        """Fork the process; raise ForkServerGoneError or OSError."""
        return await self.server.fork(request, *descriptors)


class Launcher:
    """Owns a fork server and the probe of this machine's isolation; belongs to one event loop.

    The fork server starts with the first process, and again if it has died. Without ``forks`` there
    is none, and without ``isolates`` nothing is probed. ``kind`` and ``preload`` are as in
    ``ForkServerClient``.
    """

    def __init__(
        self,
        kind: Literal["kernels", "commands"],
        *,
        forks: bool,
        isolates: bool,
        preload: Sequence[str] = (),
    ) -> None:
        self._kind = kind
        self._forks = forks
        self._isolates = isolates and forks
        self._preload = preload
        self._closed = False
        self._fork_server: ForkServerClient | None = None
        self._probe: asyncio.Future[Isolation] | None = None

    @property
    def server(self) -> ForkServerClient | None:
        """The fork server, or None if it has not been started."""
        return self._fork_server

    def begin(self) -> None:
        """Start the fork server and the probe, unless they have been started.

        Raises OSError, including after ``close``: a process that starts then would never be ended.
        """
        if self._closed:
            raise OSError("the double has stopped")
        if not self._forks:
            return
        # A fork server that has just died is noticed when its socket is read. Until then, requests
        # fail with ForkServerGoneError; see ``retried``.
        if self._fork_server is None or self._fork_server.gone.done():
            self._fork_server = ForkServerClient(self._preload, self._kind)
        # A failed probe is repeated: the machine may have lacked a resource for a moment.
        if self._isolates and isolation.is_unknown(self._probe):
            self._probe = asyncio.ensure_future(asyncio.to_thread(isolation.find_out))

    async def isolation(self) -> Isolation | None:
        """Return what the probe has found, or None if nothing is isolated; raise OSError.

        Call ``begin`` first.
        """
        # Several starts wait for the same probe. Without the shield, the first caller that gives up
        # its start would cancel the probe for all of them.
        return None if self._probe is None else await asyncio.shield(self._probe)

    def close(self) -> None:
        """Refuse to start anything from now on."""
        self._closed = True

    async def stop(self) -> None:
        """End the fork server and all processes that it has forked."""
        # The probe's thread cannot be cancelled. Its child process must not outlive this call.
        if self._probe is not None:
            await asyncio.wait({self._probe})
        if self._fork_server is not None:
            await self._fork_server.stop()
        self._fork_server = None


async def retried(start: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``start``; call it once more if the fork server died during the call.

    A fork server that dies takes all its forks with it, and ``begin`` starts another one. If that
    one dies, too, something on this machine kills it. Raises ForkServerGoneError then.
    """
    try:
        return await start()
    except ForkServerGoneError:
        return await start()


async def launch(
    kernel: str,
    plan: ForkPlan | None,
    workspace: Workspace,
    run: Path,
    *,
    config: Mapping[str, Any],
    connection_file: str = "",
    descriptors: tuple[int, ...] = (),
    ends_with_stdin: bool = False,
) -> StartedProcess:
    """Start a process of a session: by a fork as the plan says, or as a program without one.

    ``kernel`` names the module of the program. ``run`` is a directory for this process only. It
    gets ``config``, ``connection_file`` and copies of the descriptors. Raises OSError, and
    ForkServerGoneError.
    """
    readable = ("/",) if plan is None else plan.readable(str(run))
    environment = dict(workspace.environment(run, readable))
    if plan is not None:
        request = ForkRequest(
            connection_file=connection_file,
            cwd=str(workspace.home),
            env=environment,
            kernel=plan.kernel,
            config=config,
            limits=plan.limits,
            confinement=plan.confinement,
            stderr_file=str(run / STDERR) if connection_file else None,
        )
        return await plan.fork(request, *descriptors)
    from agentdouble.processes.spawned_process import spawn  # slow: psutil, and Linux forks

    arguments = (connection_file, json.dumps(config), *map(str, descriptors))
    return await spawn(
        (sys.executable, "-m", KERNELS[kernel], *arguments),
        workspace.home,
        environment,
        stdin=asyncio.subprocess.PIPE if ends_with_stdin else asyncio.subprocess.DEVNULL,
        pass_fds=descriptors,
    )
