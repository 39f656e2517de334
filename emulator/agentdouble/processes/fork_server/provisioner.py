"""The fork server as a kernel provisioner of jupyter_client, ``agentdouble-fork``."""

from __future__ import annotations

import signal
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from agentdouble.processes.fork_server.client import ForkedProcess
from agentdouble.processes.fork_server.protocol import ForkRequest

NAME = "agentdouble-fork"


class ForkProvisioner(KernelProvisionerBase):
    """Starts a kernel by a fork; the attribute ``fork`` of its kernel manager is the plan."""

    parent: Any  # the kernel manager
    process: ForkedProcess | None = None
    pid: int | None = None

    @property
    def has_process(self) -> bool:
        """Whether a process has been started and not yet waited for."""
        return self.process is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Write the connection file."""
        manager = self.parent
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        return await super().pre_launch(cmd=list(self.kernel_spec.argv), **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork the kernel."""
        plan = self.parent.fork
        self.process = await plan.fork(
            ForkRequest(
                connection_file=self.parent.connection_file,
                cwd=kwargs["cwd"],
                env=kwargs["env"],
                kernel=plan.kernel,
                config=plan.config,
                limits=plan.limits,
                confinement=plan.confinement,
                stderr_file=str(self.parent.stderr_file),
            )
        )
        self.pid = self.process.pid
        return self.connection_info

    async def poll(self) -> int | None:
        """Return None while the process is alive, else its exit code (-1 if it is unknown)."""
        if self.process is None:
            return 0
        if self.process.exited.done():
            code = self.process.exited.result()
            return -1 if code is None else code
        return -1 if self.process.has_ended() else None

    async def wait(self) -> int | None:
        """Wait until the process has ended; return its exit code, or None if it is unknown."""
        if self.process is None:
            return 0
        code = await self.process.exited
        self.process = None
        return code

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process."""
        if self.process is not None:
            self.process.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Kill the process; the processes that it has started end with it."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Send SIGTERM to the process."""
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """Do nothing: there is nothing to clean up."""
