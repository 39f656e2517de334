"""Where a double's kernels come from: forked or started otherwise, some of them kept ready.

A ready kernel comes with a workspace of its own, so a session that takes it needs no further
set-up: it is handed over as it is.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from agentdouble.errors import KernelStartError
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.sandbox.workspace import Workspace, Workspaces
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.sandbox.fork_server.client import ForkServer
    from agentdouble.sandbox.manager import ForkPlan, KernelSockets

FORK = "agentdouble-fork"
LOCAL = "local-provisioner"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Berth:
    """A kernel and the workspace it was started in."""

    kernel: Kernel
    workspace: Workspace


class Kernels:
    """Starts kernels for one double and keeps some ready; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._provisioner = provisioner(settings)
        self._ready: deque[Berth] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._fork_server: ForkServer | None = None
        self._sockets: KernelSockets | None = None
        self._workspaces: Workspaces | None = None

    @property
    def ready(self) -> int:
        """How many kernels are kept ready."""
        return sum(berth.kernel.alive for berth in self._ready)

    async def take(self) -> Berth:
        """Return a Python kernel with its workspace: a ready one, if there is one.

        Raises KernelStartError.
        """
        berth = await self._take_ready() or await self._make()
        self.fill()
        return berth

    async def start(self, language: Language, workspace: Workspace) -> Kernel:
        """Start a kernel in a workspace and return when it answers; raise KernelStartError."""
        kernel = await self._launch(language, workspace)
        timeout_s = self._settings.kernel_start_timeout_s
        try:
            await asyncio.wait_for(kernel.ready(), timeout_s)
        except asyncio.TimeoutError:
            await kernel.kill("it did not start")
            reason = f"it gave no answer for {timeout_s:g} s"
            raise KernelStartError(language.display_name, reason) from None
        except BaseException:
            await kernel.kill("its start was given up")
            raise
        return kernel

    def workspace(self) -> Workspace:
        """Make a workspace that has no kernel yet."""
        self._workspaces = self._workspaces or Workspaces()
        return self._workspaces.make()

    def fill(self) -> None:
        """Start as many ready kernels as the settings ask for, in the background."""
        if self._filling is None or self._filling.done():
            self._filling = asyncio.ensure_future(self._fill())

    async def close(self) -> None:
        """End what is ready, the fork server and the sockets; remove every workspace."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.wait({self._filling})
        while self._ready:
            await self._ready.popleft().kernel.kill("the double stopped")
        if self._fork_server is not None:
            await self._fork_server.stop()
        if self._sockets is not None:
            self._sockets.close()
        if self._workspaces is not None:
            self._workspaces.remove()
        self._fork_server = self._sockets = self._workspaces = None

    async def _take_ready(self) -> Berth | None:
        while self._ready:
            berth = self._ready.popleft()
            if berth.kernel.alive:
                return berth
            await berth.kernel.kill("it ended while it was kept ready")
            berth.workspace.remove()
        return None

    async def _make(self) -> Berth:
        workspace = self.workspace()
        try:
            return Berth(await self.start(PYTHON, workspace), workspace)
        except BaseException:
            workspace.remove()
            raise

    async def _fill(self) -> None:
        try:
            while len(self._ready) < self._settings.pool_size:
                self._ready.append(await self._make())
        except KernelStartError as error:  # the session that needs one will hear of it
            _log.warning("No kernel can be kept ready: %s", error)

    async def _launch(self, language: Language, workspace: Workspace) -> Kernel:
        from agentdouble.sandbox.fork_server.client import ForkServerGoneError
        from agentdouble.sandbox.manager import KernelSockets, kernel_manager

        self._sockets = self._sockets or KernelSockets()
        for last_try in (False, True):
            manager = kernel_manager(
                language,
                workspace,
                self._sockets,
                provisioner=self._provisioner,
                fork=await self._plan(language, workspace),
            )
            try:
                await manager.start_kernel(
                    env=dict(workspace.environment()), cwd=str(workspace.home)
                )
            except ForkServerGoneError as error:  # it died; the next try starts another
                if last_try:
                    raise KernelStartError(language.display_name, str(error)) from error
            except (OSError, RuntimeError, ModuleNotFoundError) as error:
                raise KernelStartError(language.display_name, str(error)) from error
            else:
                return Kernel(manager, language)
        raise AssertionError("unreachable")

    async def _plan(self, language: Language, workspace: Workspace) -> ForkPlan | None:
        if self._provisioner != FORK:
            return None
        from agentdouble.sandbox import isolation
        from agentdouble.sandbox.fork_server.client import ForkServer
        from agentdouble.sandbox.manager import ForkPlan

        if self._fork_server is None or self._fork_server.gone.done():
            self._fork_server = ForkServer(self._settings.preload)
        confinement = None
        if self._settings.isolation == "auto":
            found = await asyncio.to_thread(isolation.find_out)
            confinement = found.confinement_for(workspace, network=language.network)
        return ForkPlan(
            server=self._fork_server,
            kernel=language.fork_kernel,
            config=language.fork_config,
            limits=self._limits(language),
            confinement=None if confinement is None else asdict(confinement),
        )

    def _limits(self, language: Language) -> dict[str, int]:
        limits = {"open_files": self._settings.open_files_limit}
        if language.limit_memory:
            limits["memory"] = self._settings.memory_limit
        return limits


def provisioner(settings: Settings) -> str:
    """Return the name of the provisioner: the settings', or the best of this platform."""
    if settings.provisioner != "auto":
        return settings.provisioner
    return FORK if sys.platform == "linux" else LOCAL
