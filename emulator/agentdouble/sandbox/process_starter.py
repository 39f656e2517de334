"""Starts what runs in sessions: makes their workspaces, and starts workbenches and browsers.

Kernels are started by ``kernel_pool``, which shares what is counted here: how many processes are
starting, so that the machine has room for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentdouble.core import threads
from agentdouble.errors import BrowserError, KernelStartError, SandboxError, WorkbenchError
from agentdouble.processes import capacity
from agentdouble.processes.fork_server.client import ForkServerGoneError
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.sandbox.browser import WINDOW
from agentdouble.sandbox.fork_planner import ForkPlanner
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.sandbox.browser.browser import Browser
    from agentdouble.sandbox.session_process import SessionProcess
    from agentdouble.sandbox.workbench.client import Workbench

_BROWSER = "agentdouble.sandbox.browser.browser"
_IMPORTS_FOR_WORKBENCHES = (
    "agentdouble.sandbox.workbench.client",
    "anyio._backends._asyncio",  # the first request would import it
)


class ProcessStarter:
    """Starts the processes of one double's sessions beside kernels; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.planner = ForkPlanner(settings)
        self._starting = 0
        self._workspaces: Workspaces | None = None
        self._browsers = 0  # how many run or start

    def workspace(self, variables: Mapping[str, str] = MappingProxyType({})) -> Workspace:
        """Make a workspace without a kernel; add ``variables`` to its environment."""
        with capacity.named():
            self._workspaces = self._workspaces or Workspaces()
            return self._workspaces.make(variables)

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Reserve capacity for a process that starts in this context.

        Raises ResourceExhaustedError if the machine has no room for it beside the others that are
        starting.
        """
        capacity.check(self._starting)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    async def workbench(
        self, workspace: Workspace, others: Iterable[SessionProcess] = ()
    ) -> Workbench:
        """Start a session's workbench; ``others`` are as in ``KernelPool.start``.

        Raises WorkbenchError and ResourceExhaustedError.
        """
        await threads.import_in_thread(*_IMPORTS_FOR_WORKBENCHES)
        from agentdouble.sandbox.workbench import client  # slow: httpx, 0.1 s

        with _failing_with(WorkbenchError), self.reserved():
            self.planner.prepare(client.PROGRAM)
            run = workspace.make_run()
            plan = await self.planner.plan(client.PROGRAM, workspace, run, others)
            return await client.start(plan, workspace, run, self.settings.memory_limit)

    async def browser(self, workspace: Workspace, others: Iterable[SessionProcess] = ()) -> Browser:
        """Start a session's browser and return when it answers.

        Raises ResourceExhaustedError, BrowserError, and SandboxError if none is installed or too
        many run.
        """
        await threads.import_in_thread(_BROWSER)
        from agentdouble.sandbox.browser import browser, chromium  # slow: 10 ms

        settings = self.settings
        path = chromium.find(settings.browser)
        if path is None:
            message = (
                f"{settings.browser or 'Chromium'} is not installed. Install it: {chromium.INSTALL}"
            )
            raise SandboxError(message, "InternalError.Browser", 503)
        if self._browsers >= settings.max_browsers:
            message = (
                f"{settings.max_browsers} browsers run and the setting max_browsers allows no more. "
                "Destroy a session that has one, or raise the setting."
            )
            raise SandboxError(message, "QuotaExceeded", 429)
        self._browsers += 1
        try:
            with _failing_with(BrowserError), self.reserved():
                self.planner.prepare(browser.PROGRAM)
                run = workspace.make_run()
                width, height = WINDOW
                config = {"browser": path, "directory": str(run), "width": width, "height": height}
                plan = await self.planner.plan(browser.PROGRAM, workspace, run, others)
                started = await browser.start(plan, workspace, run, config)
        except BaseException:
            self._browsers -= 1
            raise
        started.died.add_done_callback(lambda _: self._forget_browser())
        try:
            await started.ready(settings.start_timeout_s)
        except BaseException:
            await started.kill("its start was abandoned")
            raise
        return started

    def _forget_browser(self) -> None:
        self._browsers -= 1

    def refuse(self) -> None:
        """Refuse to start anything from now on: it would never be ended."""
        self.planner.close()

    async def close(self) -> None:
        """End the fork server with all that it has forked, and remove all workspaces."""
        self.refuse()
        await self.planner.stop()
        if self._workspaces is not None:
            self._workspaces.remove()
        self._workspaces = None


@contextmanager
def _failing_with(kind: type[WorkbenchError] | type[BrowserError]) -> Iterator[None]:
    """Turn the failure of a start into an error of this kind, or the one that names a resource."""
    try:
        yield
    except (OSError, ForkServerGoneError, KernelStartError) as error:
        refusal = capacity.refusal_of(error)
        raise refusal or kind(str(error) or "the fork server has ended") from error
