"""Where a double's kernels come from: forked or started otherwise, some of them kept ready.

A ready kernel comes with a workspace of its own, so a session that takes it needs no further
set-up: it is handed over as it is.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentdouble import threads
from agentdouble.errors import KernelStartError, NotBuiltError, WorkbenchError
from agentdouble.processes import capacity
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.sandbox.ready import PooledKernel, Ready
from agentdouble.sandbox.undivided import undivided
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkServer
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.isolation import Isolation
    from agentdouble.sandbox.browser.browser import Browser
    from agentdouble.sandbox.browser.browsers import Browsers
    from agentdouble.sandbox.manager import ForkPlan, KernelSockets, SandboxKernelManager
    from agentdouble.sandbox.workbench.client import Workbench

    SessionProcess: TypeAlias = Kernel | Workbench | Browser  # what a session has running

FORK = "agentdouble-fork"
LOCAL = "local-provisioner"
_NO_NETWORK_OF_ITS_OWN = (
    "network = 'none' needs the measure network, which only kernels of the fork server have that "
    "are held apart: provisioner = 'auto' on Linux, isolation = 'auto'"
)

_TO_GET_GOING = (
    "agentdouble.processes.isolation",
    "agentdouble.processes.fork_server.client",
)
_FOR_KERNELS = (
    "agentdouble.sandbox.manager",
    "jupyter_client.provisioning",
    "agentdouble.processes.fork_server.client",
    "agentdouble.processes.fork_server.provisioner",
)
_FOR_WORKBENCHES = (
    "agentdouble.sandbox.manager",
    "agentdouble.sandbox.workbench.client",
    "agentdouble.processes.fork_server.client",
    "anyio._backends._asyncio",  # these two the first request would import
    "httpcore._async.http11",
)
_FOR_BROWSERS = (
    "agentdouble.sandbox.browser.browsers",
    "agentdouble.sandbox.manager",
    "agentdouble.processes.fork_server.processes",
)

_FIRST_ANSWER_S = 0.05  # a start costs as much as four answers: it lets the first one out before
_HEADERS = 16 * 1024  # bytes of a message besides its content, and some more
_STOPPED = "the double has stopped"


@dataclass(frozen=True)
class _Place:
    """Where a kernel is started: its session's workspace, its own ``run``, beside which others."""

    workspace: Workspace
    run: Path
    beside: tuple[SessionProcess, ...]


class KernelPool:
    """Starts kernels for one double and keeps some ready; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._provisioner = provisioner(settings)
        self._ready = Ready(self._make, settings.pool_size)
        self._closed = False
        self._starting = 0
        self._fork_server: ForkServer | None = None
        self._isolation: asyncio.Future[Isolation] | None = None
        self._sockets: KernelSockets | None = None
        self._workspaces: Workspaces | None = None
        self._as_own_user: set[SessionProcess] = set()  # other threads read it: they take a copy
        self._browsers: Browsers | None = None

    @property
    def ready(self) -> int:
        """How many kernels are kept ready."""
        return len(self._ready)

    def roots(self) -> tuple[int, ...]:
        """Return the processes below which code of sessions runs as this process's user."""
        if self._as_own_user and self._fork_server is not None:
            return (self._fork_server.pid,)  # it also has what kernels have left
        pids = (one.pid for one in self._as_own_user.copy() if one.alive)
        return tuple(pid for pid in pids if pid is not None)

    async def take(self) -> PooledKernel:
        """Return a Python kernel with its workspace: a ready one, if there is one that lives.

        Raises as ``start`` does.
        """
        with capacity.named():  # a ready one is asked whether it lives
            ready = await self._ready.take()
        pooled = ready or await self._make()
        self._ready.fill(after_s=_FIRST_ANSWER_S)
        return pooled

    async def start(
        self, language: Language, workspace: Workspace, beside: Iterable[SessionProcess] = ()
    ) -> Kernel:
        """Start a kernel in a workspace and return when it answers.

        ``beside`` are the session's other kernels and its workbench: it shares their network.
        Raises KernelStartError, and ResourceExhaustedError where the machine has no room for it.
        """
        try:
            with self._room():
                return await self._start(language, workspace, beside)
        except KernelStartError:
            capacity.check()  # a process that does not get what it needs cannot say so
            raise

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Have room for what is started inside, besides what else starts meanwhile."""
        capacity.check(self._starting)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    async def _start(
        self, language: Language, workspace: Workspace, beside: Iterable[SessionProcess]
    ) -> Kernel:
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
        with capacity.named():
            self._workspaces = self._workspaces or Workspaces()
            return self._workspaces.make(variables)

    async def workbench(
        self, workspace: Workspace, beside: Iterable[SessionProcess] = ()
    ) -> Workbench:
        """Start a session's workbench; ``beside`` as in ``start``.

        Raises WorkbenchError, ResourceExhaustedError, and NotBuiltError where another provisioner
        has its kernels elsewhere.
        """
        if self._provisioner not in (FORK, LOCAL):
            what = f"A session's terminals and files with the provisioner {self._provisioner!r}"
            raise NotBuiltError(what)
        await threads.import_in_thread(*_TO_GET_GOING, *_FOR_WORKBENCHES)
        from agentdouble.processes.fork_server.client import ForkServerGoneError

        try:
            with self._room():
                return await self._start_workbench(workspace, tuple(beside))
        except (OSError, ForkServerGoneError, KernelStartError) as error:
            refusal = capacity.refusal_of(error)
            raise refusal or WorkbenchError(str(error) or "the fork server has ended") from error

    async def _start_workbench(
        self, workspace: Workspace, beside: tuple[SessionProcess, ...]
    ) -> Workbench:
        from agentdouble.sandbox.workbench import client

        self._get_going(client.PROGRAM)
        run, memory_limit = workspace.make_run(), self._settings.memory_limit
        plan = await self._plan(client.PROGRAM, _Place(workspace, run, beside))
        if plan is None:
            started = await client.spawn(workspace, run, memory_limit)
        else:
            started = await client.fork(plan, workspace, run, memory_limit)
        self._note_user(started, plan)
        return started

    async def browser(self, workspace: Workspace, beside: Iterable[SessionProcess] = ()) -> Browser:
        """Start a session's browser and return when it answers.

        Raises BrowserMissingError, TooManyBrowsersError, BrowserError, and NotBuiltError where
        kernels are remote.
        """
        await threads.import_in_thread(*_TO_GET_GOING, *_FOR_BROWSERS)
        from agentdouble.sandbox.browser.browser import PROGRAM
        from agentdouble.sandbox.browser.browsers import Browsers

        if self._provisioner not in (FORK, LOCAL):
            raise NotBuiltError(f"A session's browser with the provisioner {self._provisioner!r}")
        self._browsers = self._browsers or Browsers(self._settings)
        self._get_going(PROGRAM)
        with capacity.named():
            place = _Place(workspace, workspace.make_run(), tuple(beside))
        return await self._browsers.start(
            workspace, place.run, lambda: self._plan(PROGRAM, place), self._note_user
        )

    def fill(self) -> None:
        """Start as many ready kernels as the settings ask for, in the background."""
        self._ready.fill()

    async def close(self) -> None:
        """End what is ready, the fork server and the sockets; remove every workspace."""
        self._closed = True
        await self._ready.close()
        if self._isolation is not None:
            await asyncio.wait({self._isolation})
        if self._fork_server is not None:
            await self._fork_server.stop()
        if self._sockets is not None:
            self._sockets.close()
        if self._workspaces is not None:
            self._workspaces.remove()
        self._fork_server = self._sockets = self._workspaces = None

    async def _make(self) -> PooledKernel:
        workspace = self.workspace()
        try:
            return PooledKernel(await self.start(PYTHON, workspace), workspace)
        except BaseException:
            workspace.remove()
            raise

    async def _launch(
        self, language: Language, workspace: Workspace, beside: Iterable[SessionProcess]
    ) -> Kernel:
        await threads.import_in_thread(*_TO_GET_GOING)
        self._get_going(language)  # before the imports: they take as long as what it begins
        await threads.import_in_thread(*_FOR_KERNELS)
        from agentdouble.processes.fork_server.client import ForkServerGoneError
        from agentdouble.sandbox.manager import KernelSockets, kernel_manager

        self._sockets = self._sockets or KernelSockets()
        language = language.with_heap(self._settings.javascript_memory_limit)
        for last_try in (False, True):
            self._get_going(language)
            with capacity.named():
                run = workspace.make_run()
            fork = await self._plan(language, _Place(workspace, run, tuple(beside)))
            manager = kernel_manager(
                language, run, self._sockets, provisioner=self._provisioner, fork=fork
            )
            try:
                kernel = await _started(manager, language, workspace, run)
            except ForkServerGoneError as error:  # it died; the next try starts another
                if last_try:
                    raise KernelStartError(language.display_name, str(error)) from error
            except (OSError, RuntimeError, ModuleNotFoundError) as error:
                refusal = capacity.refusal_of(error)
                raise refusal or KernelStartError(language.display_name, str(error)) from error
            else:
                self._note_user(kernel, fork)
                return kernel
        raise AssertionError("unreachable")

    def _note_user(self, started: SessionProcess, plan: ForkPlan | None) -> None:
        """Keep what runs as this process's own user apart from what cannot."""
        if plan is None or (plan.confinement or {}).get("uid") is None:
            self._as_own_user.add(started)
            started.died.add_done_callback(lambda _: self._as_own_user.discard(started))

    def _get_going(self, program: Language) -> None:
        """Have the fork server import, and isolation found out, while this process imports.

        Raises KernelStartError, also when the double has stopped: nobody would end what starts then.
        """
        if self._closed:
            raise KernelStartError(program.display_name, _STOPPED)
        if self._provisioner != FORK:
            return
        from agentdouble.processes import isolation
        from agentdouble.processes.fork_server.client import ForkServer

        if self._fork_server is None or self._fork_server.gone.done():
            try:
                self._fork_server = ForkServer(self._settings.preload)
            except OSError as error:
                refusal = capacity.refusal_of(error)
                raise refusal or KernelStartError(program.display_name, str(error)) from error
        if self._settings.isolation != "none" and isolation.is_unknown(self._isolation):
            self._isolation = asyncio.ensure_future(asyncio.to_thread(isolation.find_out))

    async def _plan(self, language: Language, place: _Place) -> ForkPlan | None:
        confinement = await self._confinement(language, place)
        if self._fork_server is None:
            return None
        from agentdouble.sandbox.manager import ForkPlan

        return ForkPlan(
            server=self._fork_server,
            kernel=language.fork_kernel,
            config=self._config(language),
            limits=self._limits,
            confinement=None if confinement is None else asdict(confinement),
        )

    async def _confinement(self, language: Language, place: _Place) -> Confinement | None:
        settings, name = self._settings, language.display_name
        if self._isolation is None:
            if settings.network == "none":
                raise KernelStartError(name, _NO_NETWORK_OF_ITS_OWN)
            return None
        try:
            found = await asyncio.shield(self._isolation)  # other starts wait for it, too
        except OSError as error:
            reason = f"what holds its code could not be found out: {error}"
            raise capacity.refusal_of(error) or KernelStartError(name, reason) from error
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
            memory_limit=settings.memory_limit,
        )

    @property
    def _largest_message(self) -> int:
        """What a kernel need not send, because it is more than an answer holds (bytes)."""
        return self._settings.output_limit + _HEADERS

    def _network(self, language: Language) -> Literal["shared", "own"]:
        return "own" if self._settings.network == "none" else language.network

    def _config(self, language: Language) -> dict[str, Mapping[str, Any]]:
        config = {**language.fork_config, "CappedSession": {"limit": self._largest_message}}
        if language.memory == "address space":
            config["SandboxKernel"] = {"memory_limit": self._settings.memory_limit}
        return config

    @property
    def _limits(self) -> dict[str, int]:
        return {
            "open_files": self._settings.open_files_limit,
            # below the limit of all files: who is refused this one lives on
            "file_size": self._settings.workspace_limit // 8 * 7,
        }


def provisioner(settings: Settings) -> str:
    """Return the name of the provisioner: the settings', or the best of this platform."""
    if settings.provisioner != "auto":
        return settings.provisioner
    return FORK if sys.platform == "linux" else LOCAL


@contextmanager
def _system_errors() -> Iterator[None]:
    """Raise an error of zmq's as the error of the system that it is: no descriptor is free, say."""
    import zmq

    try:
        yield
    except zmq.ZMQError as error:
        raise OSError(error.errno, error.strerror) from error


async def _started(
    manager: SandboxKernelManager, language: Language, workspace: Workspace, run: Path
) -> Kernel:
    """Start a kernel's process; where that fails, or is given up, leave nothing of it."""
    try:
        await manager.start_kernel(env=dict(workspace.environment(run)), cwd=str(workspace.home))
        with _system_errors():
            return Kernel(manager, language)
    except BaseException:
        await undivided(manager.discard())
        raise
