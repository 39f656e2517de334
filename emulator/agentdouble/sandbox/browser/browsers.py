"""The browsers of a double: finds the program, starts browsers and limits their number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentdouble.errors import (
    BrowserError,
    BrowserMissingError,
    KernelStartError,
    LimitError,
)
from agentdouble.processes import capacity
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.browser import browser, chromium
from agentdouble.sandbox.browser.browser import Browser
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.sandbox.fork_planner import ForkPlan


class Browsers:
    """Starts browsers for one double; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: set[Browser] = set()
        self._starting = 0

    async def start(
        self,
        workspace: Workspace,
        run: Path,
        plan: Callable[[], Awaitable[ForkPlan | None]],
    ) -> Browser:
        """Start a session's browser and return it when it answers.

        ``run`` is a directory for this browser only. ``plan`` returns the plan for its fork, None
        to start it without a fork. Raises BrowserMissingError, LimitError, ResourceExhaustedError or
        BrowserError.
        """
        from agentdouble.processes.fork_server.client import ForkServerGoneError

        config = self._config(run)
        self._check_limit()
        capacity.check()
        self._starting += 1
        try:
            started = await browser.start(await plan(), workspace, run, config)
            self._running.add(started)
            started.died.add_done_callback(lambda _: self._running.discard(started))
        except (OSError, ForkServerGoneError, KernelStartError) as error:
            refusal = capacity.refusal_of(error)
            raise refusal or BrowserError(str(error) or "the fork server has ended") from error
        finally:
            self._starting -= 1
        try:
            await started.ready(self._settings.browser_start_timeout_s)
        except BaseException:
            await started.kill("its start was given up")
            raise
        return started

    def _config(self, run: Path) -> dict[str, Any]:
        path = chromium.find(self._settings.browser)
        if path is None:
            raise BrowserMissingError(self._settings.browser or "Chromium", chromium.INSTALL)
        width, height = self._settings.browser_size
        return {"browser": path, "directory": str(run), "width": width, "height": height}

    def _check_limit(self) -> None:
        limit = self._settings.max_browsers
        if len(self._running) + self._starting >= limit:
            raise LimitError(
                limit,
                "browsers run and the setting max_browsers allows no more. "
                "Destroy a session that has one, or raise the setting.",
            )
