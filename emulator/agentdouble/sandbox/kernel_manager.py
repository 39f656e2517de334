"""jupyter_client's kernel manager as the sandbox uses it.

Import it only when a kernel is started: jupyter_client is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from agentdouble.processes.fork_server.client import ForkServer
from agentdouble.sandbox.languages import Language


class KernelSockets:
    """The zmq context of every kernel of a double; close it when the last kernel is gone."""

    def __init__(self) -> None:
        self.context = zmq.asyncio.Context()
        # 1023 by default, which is some 500 kernels; it takes 12 bytes for each
        self.context.set(zmq.MAX_SOCKETS, self.context.get(zmq.SOCKET_LIMIT))
        self.context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms; zmq's own 100 delays every start
        self.context.setsockopt(zmq.RCVHWM, 0)  # no limit: a flood must not drop outputs

    def close(self) -> None:
        """Close the context and whatever socket is still open."""
        self.context.destroy(linger=0)


@dataclass(frozen=True)
class ForkPlan:
    """What the fork server's provisioner needs in addition to jupyter_client's arguments."""

    server: ForkServer
    kernel: str
    config: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, int]
    confinement: Mapping[str, Any] | None


class SandboxKernelManager(AsyncKernelManager):
    """A kernel manager for one kernel of a session; ``fork`` is for our own provisioner.

    ``stderr_file`` has what a forked kernel prints to standard error before it is ready.
    """

    fork: ForkPlan | None = None
    stderr_file: Path

    async def discard(self) -> None:
        """Kill the kernel's process, if there is one, and remove what was made for it."""
        if self.provisioner is not None and self.provisioner.has_process:
            await self.provisioner.kill()
            await self.provisioner.wait()
        await self.cleanup_resources()

    async def _async_post_start_kernel(self, **kw: Any) -> None:
        """Open no control socket, as jupyter_client does: nothing is asked there."""
        assert self.provisioner is not None
        await self.provisioner.post_launch(**kw)

    post_start_kernel = _async_post_start_kernel


class _OneSpec(KernelSpecManager):
    """Knows one kernel, ours, whatever kernels this user has installed."""

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
    """Return a manager that has not started its kernel yet; ``run`` is for its sockets."""
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
