"""Where a double's kernels come from: forked or started otherwise, some of them kept ready.

A ready kernel comes with a workspace of its own, so a session that takes it needs no further
set-up: it is handed over as it is.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentdouble import threads
from agentdouble.errors import KernelStartError, NotBuiltError, WorkbenchError
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkServer
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.isolation import Isolation
    from agentdouble.sandbox.browser.browser import Browser
    from agentdouble.sandbox.browser.browsers import Browsers
    from agentdouble.sandbox.manager import ForkPlan, KernelSockets
    from agentdouble.sandbox.workbench.client import Workbench

    Servant: TypeAlias = Kernel | Workbench | Browser  # what a session has running

FORK = "agentdouble-fork"
LOCAL = "local-provisioner"
_NO_NETWORK_OF_ITS_OWN = (
    "network = 'none' needs the measure network, which only kernels of the fork server have that "
    "are held apart: provisioner = 'auto' on Linux, isolation = 'auto'"
)

_FOR_KERNELS = (
    "agentdouble.sandbox.manager",
    "jupyter_client.provisioning",
    "agentdouble.processes.fork_server.client",
    "agentdouble.processes.fork_server.provisioner",
)
_FOR_WORKBENCHES = (
    "agentdouble.sandbox.workbench.client",
    "agentdouble.processes.fork_server.client",
    "anyio._backends._asyncio",  # these two the first request would import
    "httpcore._async.http11",
)

_FIRST_ANSWER_S = 0.05  # a start costs as much as four answers: it lets the first one out before
_MOST_LOST = 10
_HEADERS = 16 * 1024  # bytes of a message besides its content, and some more
_ENDED_READY = "it ended while it was kept ready"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Berth:
    """A kernel and the workspace it was started in."""

    kernel: Kernel
    workspace: Workspace


@dataclass(frozen=True)
class _Place:
    """Where a kernel is started: its session's workspace, its own ``run``, beside which others."""

    workspace: Workspace
    run: Path
    beside: tuple[Servant, ...]


class Kernels:
    """Starts kernels for one double and keeps some ready; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._provisioner = provisioner(settings)
        self._ready: deque[Berth] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._discarding: set[asyncio.Task[None]] = set()
        self._lost = 0
        self._fork_server: ForkServer | None = None
        self._isolation: asyncio.Future[Isolation] | None = None
        self._sockets: KernelSockets | None = None
        self._workspaces: Workspaces | None = None
        self._as_own_user: tuple[Servant, ...] = ()  # never changed, for other threads read it
        self._browsers: Browsers | None = None

    @property
    def ready(self) -> int:
        """How many kernels are kept ready."""
        return sum(berth.kernel.alive for berth in self._ready)

    def roots(self) -> tuple[int, ...]:
        """Return the processes below which code of sessions runs as this process's user."""
        pids = {kernel.pid for kernel in self._as_own_user if kernel.alive}
        if pids and self._fork_server is not None:
            pids = {self._fork_server.pid}  # it also has what kernels have left
        return tuple(pid for pid in pids if pid is not None)

    async def take(self) -> Berth:
        """Return a Python kernel with its workspace: a ready one, if there is one that lives.

        Raises KernelStartError.
        """
        self._lost = 0
        berth = await self._take_ready() or await self._make()
        self.fill(after_s=_FIRST_ANSWER_S)
        return berth

    async def start(
        self, language: Language, workspace: Workspace, beside: Iterable[Servant] = ()
    ) -> Kernel:
        """Start a kernel in a workspace and return when it answers; raise KernelStartError.

        ``beside`` are the session's other kernels and its workbench: it shares their network.
        """
        timeout_s = self._settings.kernel_start_timeout_s
        reason = f"it gave no answer for {timeout_s:g} s"
        try:
            kernel = await asyncio.wait_for(self._launch(language, workspace, beside), timeout_s)
        except asyncio.TimeoutError:  # what starts it stands still
            raise KernelStartError(language.display_name, reason) from None
        try:
            await asyncio.wait_for(kernel.ready(), timeout_s)
        except asyncio.TimeoutError:
            await kernel.kill("it did not start")
            raise KernelStartError(language.display_name, reason) from None
        except BaseException:
            await kernel.kill("its start was given up")
            raise
        return kernel

    def workspace(self, variables: Mapping[str, str] = MappingProxyType({})) -> Workspace:
        """Make a workspace that has no kernel yet; ``variables`` join its environment."""
        self._workspaces = self._workspaces or Workspaces()
        return self._workspaces.make(variables)

    async def workbench(self, workspace: Workspace, beside: Iterable[Servant] = ()) -> Workbench:
        """Start a session's workbench; ``beside`` as in ``start``.

        Raises WorkbenchError, and NotBuiltError where another provisioner has its kernels
        elsewhere.
        """
        await threads.imported(*_FOR_WORKBENCHES)
        from agentdouble.processes.fork_server.client import ForkServerGoneError
        from agentdouble.sandbox.workbench import client

        if self._provisioner not in (FORK, LOCAL):
            what = f"A session's terminals and files with the provisioner {self._provisioner!r}"
            raise NotBuiltError(what)
        memory_limit = self._settings.memory_limit
        try:
            self._get_going()
            run = workspace.make_run()
            plan = await self._plan(client.PROGRAM, _Place(workspace, run, tuple(beside)))
            if plan is None:
                started = await client.spawn(workspace, run, memory_limit)
            else:
                started = await client.fork(plan, workspace, run, memory_limit)
            self._note_user(started, plan)
            return started
        except (OSError, ForkServerGoneError, KernelStartError) as error:
            raise WorkbenchError(str(error) or "the fork server has ended") from error

    async def browser(self, workspace: Workspace, beside: Iterable[Servant] = ()) -> Browser:
        """Start a session's browser and return when it answers.

        Raises BrowserMissingError, TooManyBrowsersError, BrowserError, and NotBuiltError where
        kernels are remote.
        """
        from agentdouble.sandbox.browser.browser import PROGRAM
        from agentdouble.sandbox.browser.browsers import Browsers

        if self._provisioner not in (FORK, LOCAL):
            raise NotBuiltError(f"A session's browser with the provisioner {self._provisioner!r}")
        self._browsers = self._browsers or Browsers(self._settings)
        self._get_going()
        place = _Place(workspace, workspace.make_run(), tuple(beside))
        return await self._browsers.start(
            workspace, place.run, lambda: self._plan(PROGRAM, place), self._note_user
        )

    def fill(self, *, after_s: float = 0) -> None:
        """Start as many ready kernels as the settings ask for, in the background."""
        if self._filling is None or self._filling.done():
            self._filling = asyncio.ensure_future(self._fill(after_s))

    async def close(self) -> None:
        """End what is ready, the fork server and the sockets; remove every workspace."""
        while self._filling is not None and not self._filling.done():
            self._filling.cancel()
            await asyncio.wait({self._filling})
        while self._ready:
            self._discard(self._ready.popleft(), "the double stopped")
        if self._discarding:
            await asyncio.wait(self._discarding)
        if self._isolation is not None:
            await asyncio.wait({self._isolation})
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
            if await berth.kernel.lives():
                return berth
            self._discard(berth, _ENDED_READY)
        return None

    def _on_died(self, berth: Berth, _died: asyncio.Future[int | None]) -> None:
        """Start another kernel for a ready one that has ended, unless they all keep ending."""
        if berth not in self._ready:  # it was taken
            return
        self._ready.remove(berth)
        self._discard(berth, _ENDED_READY)
        self._lost += 1
        if self._lost <= _MOST_LOST:
            self.fill()
            return
        _log.warning(
            "No kernel is kept ready until one is asked for: the last %d ended.", self._lost
        )

    def _discard(self, berth: Berth, reason: str) -> None:
        """Let go of a ready kernel and its workspace, in the background."""

        async def discard() -> None:
            await berth.kernel.kill(reason)
            await threads.beside(berth.workspace.remove)

        task = asyncio.ensure_future(discard())
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)

    async def _make(self) -> Berth:
        workspace = self.workspace()
        try:
            return Berth(await self.start(PYTHON, workspace), workspace)
        except BaseException:
            workspace.remove()
            raise

    async def _fill(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        try:
            while len(self._ready) < self._settings.pool_size:
                berth = await self._make()
                self._ready.append(berth)
                berth.kernel.died.add_done_callback(partial(self._on_died, berth))
        except KernelStartError as error:  # the session that needs one will hear of it
            _log.warning("No kernel can be kept ready: %s", error)

    async def _launch(
        self, language: Language, workspace: Workspace, beside: Iterable[Servant]
    ) -> Kernel:
        self._get_going()  # before the imports: they take as long as what it begins
        await threads.imported(*_FOR_KERNELS)
        from agentdouble.processes.fork_server.client import ForkServerGoneError
        from agentdouble.sandbox.manager import KernelSockets, kernel_manager

        self._sockets = self._sockets or KernelSockets()
        language = language.with_heap(self._settings.javascript_memory_limit)
        for last_try in (False, True):
            self._get_going()
            run = workspace.make_run()
            fork = await self._plan(language, _Place(workspace, run, tuple(beside)))
            manager = kernel_manager(
                language, run, self._sockets, provisioner=self._provisioner, fork=fork
            )
            try:
                await manager.start_kernel(
                    env=dict(workspace.environment(run)), cwd=str(workspace.home)
                )
            except ForkServerGoneError as error:  # it died; the next try starts another
                if last_try:
                    raise KernelStartError(language.display_name, str(error)) from error
            except (OSError, RuntimeError, ModuleNotFoundError) as error:
                raise KernelStartError(language.display_name, str(error)) from error
            else:
                kernel = Kernel(manager, language)
                self._note_user(kernel, fork)
                return kernel
        raise AssertionError("unreachable")

    def _note_user(self, started: Servant, plan: ForkPlan | None) -> None:
        """Keep what runs as this process's own user apart from what cannot."""
        if plan is None or (plan.confinement or {}).get("uid") is None:
            living = (one for one in self._as_own_user if one.alive)
            self._as_own_user = (*living, started)

    def _get_going(self) -> None:
        """Have the fork server import, and isolation found out, while this process imports."""
        if self._provisioner != FORK:
            return
        from agentdouble.processes import isolation
        from agentdouble.processes.fork_server.client import ForkServer

        if self._fork_server is None or self._fork_server.gone.done():
            self._fork_server = ForkServer(self._settings.preload)
        if self._isolation is None and self._settings.isolation != "none":
            self._isolation = asyncio.ensure_future(asyncio.to_thread(isolation.find_out))

    async def _plan(self, language: Language, place: _Place) -> ForkPlan | None:
        confinement = await self._confinement(language, place)
        if self._fork_server is None:
            return None
        from agentdouble.sandbox.manager import ForkPlan

        return ForkPlan(
            server=self._fork_server,
            kernel=language.fork_kernel,
            config={**language.fork_config, "CappedSession": {"limit": self._largest_message}},
            limits=self._limits(language),
            confinement=None if confinement is None else asdict(confinement),
        )

    async def _confinement(self, language: Language, place: _Place) -> Confinement | None:
        settings, name = self._settings, language.display_name
        if self._isolation is None:
            if settings.network == "none":
                raise KernelStartError(name, _NO_NETWORK_OF_ITS_OWN)
            return None
        found = await asyncio.shield(self._isolation)  # other starts wait for it, too
        if settings.network == "none" and not found.offers("network"):
            measure = found.measures["network"]
            reason = f"{measure.why_not}. What would bring it: {measure.remedy}"
            raise KernelStartError(name, f"network = 'none' needs the measure network: {reason}")
        others = (k.pid for k in place.beside if k.alive and self._network(k.language) == "own")
        return found.confinement_for(
            place.workspace,
            place.run,
            network=self._network(language),
            beside=next(others, None),
            visible=settings.visible_paths,
            process_limit=settings.process_limit,
        )

    @property
    def _largest_message(self) -> int:
        """What a kernel need not send, because it is more than an answer holds (bytes)."""
        return self._settings.output_limit + _HEADERS

    def _network(self, language: Language) -> Literal["shared", "own"]:
        return "own" if self._settings.network == "none" else language.network

    def _limits(self, language: Language) -> dict[str, int]:
        limits = {
            "open_files": self._settings.open_files_limit,
            # below the limit of all files: who is refused this one lives on
            "file_size": self._settings.workspace_limit // 8 * 7,
        }
        if language.memory == "address space":
            limits["memory"] = self._settings.memory_limit
        return limits


def provisioner(settings: Settings) -> str:
    """Return the name of the provisioner: the settings', or the best of this platform."""
    if settings.provisioner != "auto":
        return settings.provisioner
    return FORK if sys.platform == "linux" else LOCAL
