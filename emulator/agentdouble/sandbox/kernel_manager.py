"""jupyter_client's kernel manager, adapted to the sandbox.

Import this module only to start a kernel, because jupyter_client takes long to import.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from agentdouble.processes.fork_server.client import ForkChannel, ForkedProcess
from agentdouble.processes.fork_server.confinement import give
from agentdouble.processes.fork_server.protocol import GO, ForkRequest
from agentdouble.sandbox.languages import Language


class KernelSockets:
    """The zmq context of all kernels of a double; close it when the last kernel has ended."""

    def __init__(self) -> None:
        self.context = zmq.asyncio.Context()
        # The default of 1023 is enough for about 500 kernels; each socket takes 12 bytes.
        self.context.set(zmq.MAX_SOCKETS, self.context.get(zmq.SOCKET_LIMIT))
        self.context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms; zmq's own 100 delays every start
        self.context.setsockopt(zmq.RCVHWM, 0)  # no limit: a flood must not drop outputs

    def close(self) -> None:
        """Close the context and all sockets that are still open."""
        self.context.destroy(linger=0)


@dataclass(frozen=True)
class ForkPlan:
    """The arguments of the fork server's provisioner, in addition to jupyter_client's."""

    server: ForkChannel
    kernel: str
    config: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, int]
    confinement: Mapping[str, Any] | None

    async def fork(self, request: ForkRequest) -> ForkedProcess:
        """Fork a kernel; raise ForkServerGoneError or OSError."""
        return await self.server.fork(request)


@dataclass(frozen=True)
class CopyPlan(ForkPlan):
    """How a template forks a copy of a kernel; ``furnish`` gives the copy files of its own.

    ``files`` is done when these files are there.
    """

    furnish: Callable[[ForkedProcess], Awaitable[None]]
    home_of_first: str
    files: asyncio.Future[None]

    async def fork(self, request: ForkRequest) -> ForkedProcess:
        """Fork a copy, and let it go on when it has its own files."""
        loop = asyncio.get_running_loop()
        gate, theirs = socket.socketpair()
        with gate:
            gate.setblocking(False)
            with theirs:
                process = await self.server.fork(request, theirs.fileno())
            try:
                if not await loop.sock_recv(gate, 1):
                    raise OSError("the copy has ended before it had its files")
                await self.files
                if self.confinement is not None:
                    if self.confinement["uid"] is not None:
                        give(self.confinement["run"], self.confinement["uid"])
                    await self.furnish(process)
                await loop.sock_sendall(gate, GO)
            except BaseException:
                process.send_signal(signal.SIGKILL)
                raise
            return process


class SandboxKernelManager(AsyncKernelManager):
    """A kernel manager for one kernel of a session; ``fork`` is for our own provisioner.

    ``stderr_file`` receives the standard error of a forked kernel until it is ready.
    """

    fork: ForkPlan | None = None
    stderr_file: Path

    async def discard(self) -> None:
        """Kill the kernel's process, if there is one, and remove the resources made for it."""
        if self.provisioner is not None and self.provisioner.has_process:
            await self.provisioner.kill()
            await self.provisioner.wait()
        await self.cleanup_resources()

    async def _async_post_start_kernel(self, **kw: Any) -> None:
        """Open no control socket, unlike jupyter_client, because we send no control requests."""
        assert self.provisioner is not None
        await self.provisioner.post_launch(**kw)

    post_start_kernel = _async_post_start_kernel


class _OneSpec(KernelSpecManager):
    """A spec manager that returns our kernel, whatever kernels this user has installed."""

    spec: KernelSpec

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return self.spec


def kernel_manager(
    language: Language,
    run: Path,
    sockets: KernelSockets,
    *,
    provisioner: str,
    fork: ForkPlan | None,
) -> SandboxKernelManager:
    """Return a manager whose kernel is not started yet; the sockets' files go to ``run``."""
    specs = _OneSpec()
    specs.spec = KernelSpec(
        argv=list(language.argv),
        display_name=language.display_name,
        language=language.name,
        metadata={"kernel_provisioner": {"provisioner_name": provisioner}},
    )
    manager = SandboxKernelManager(
        context=sockets.context,
        kernel_spec_manager=specs,
        kernel_name=language.name,
        transport="ipc",
        connection_file=str(run / f"{language.name}.json"),
    )
    manager.fork = fork
    manager.stderr_file = run / "stderr"
    return manager
