"""The event loops on which agents run: one for each application, separate from the server's.

An agent may block its loop; the server and other applications continue. If a loop does not start a
new run within ``BLOCKED_AFTER_S``, an agent blocks it: that run and later runs move to a new loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agentdouble.server.application_loop import ApplicationLoop

BLOCKED_AFTER_S = 0.25
END_WITHIN_S = 5.0
_log = logging.getLogger(__name__)

T = TypeVar("T")
Start = Callable[[], Coroutine[Any, Any, None]]


class LoopTask:
    """A coroutine on an application's loop, which the server's loop can cancel."""

    def __init__(self, start: Start) -> None:
        self._unclaimed = [start]  # the loop that pops it runs it; two loops may try
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._cancelled = False
        self.watch: asyncio.TimerHandle | None = None

    @property
    def has_started(self) -> bool:
        """Whether a loop has started the coroutine."""
        return not self._unclaimed

    def begin(self) -> None:
        """Start the coroutine on this loop, unless another loop has started it."""
        try:
            start = self._unclaimed.pop()
        except IndexError:
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(start())
        self._running = loop, task
        if self._cancelled:  # cancelled before there was a task
            task.cancel()

    def stop_watching(self) -> None:
        """Stop the timer that checks whether the task has started."""
        if self.watch is not None:
            self.watch.cancel()
            self.watch = None

    def call_soon(self, function: Callable[[], object]) -> None:
        """If the coroutine has started, call a function on its loop from the server's loop."""
        if self._running is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._running[0].call_soon_threadsafe(function)

    def cancel(self) -> None:
        """Cancel the coroutine from the server's loop, unless it has ended."""
        self.stop_watching()
        self._cancelled = True
        if self._running is not None:
            self.call_soon(self._running[1].cancel)


class AgentLoops:
    """One event loop for each application, created for its first run."""

    def __init__(self) -> None:
        self._loops: dict[str, ApplicationLoop] = {}
        self._blocked: list[ApplicationLoop] = []
        self._making = asyncio.Lock()
        self._moving: set[asyncio.Task[None]] = set()

    async def submit(self, app: str, start: Start) -> LoopTask:
        """Run a coroutine on the application's loop, in the caller's context."""
        loop = self._loops.get(app) or await self._new_loop(app, None)
        new = LoopTask(start)
        loop.call_soon(new.begin)
        caller_loop = asyncio.get_running_loop()
        # A timer of this loop, because a blocked loop cannot notice that it is blocked.
        new.watch = caller_loop.call_later(BLOCKED_AFTER_S, self._check_started, app, loop, new)
        return new

    async def call(self, app: str, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the application's loop and return its result."""
        loop = self._loops.get(app) or await self._new_loop(app, None)
        return await loop.run(function())

    async def end(self, app: str, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a last coroutine on an application's loop, if it has one; log errors."""
        loop = self._loops.get(app)
        if loop is None:
            return
        try:
            await asyncio.wait_for(loop.run(last()), END_WITHIN_S)
        except Exception:
            _log.warning("Releasing the resources of the agents of %r failed.", app, exc_info=True)

    async def close(self) -> None:
        """Cancel every run and end every loop."""
        # Wait and do not cancel: a loop that is just being created would stay open.
        while self._moving:
            # From Python 3.12 on, gather() of finished tasks returns without yielding to the loop,
            # so they would never leave the set.
            await asyncio.wait(self._moving)
        loops = [*self._loops.values(), *self._blocked]
        self._loops.clear()
        self._blocked.clear()
        await asyncio.gather(*(loop.stop() for loop in loops))

    def _check_started(self, app: str, loop: ApplicationLoop, pending: LoopTask) -> None:
        if pending.has_started:
            return
        moving = asyncio.ensure_future(self._move(app, loop, pending))
        self._moving.add(moving)
        moving.add_done_callback(self._moving.discard)

    async def _move(self, app: str, blocked: ApplicationLoop, pending: LoopTask) -> None:
        loop = await self._new_loop(app, blocked)
        loop.call_soon(pending.begin)

    async def _new_loop(self, app: str, blocked: ApplicationLoop | None) -> ApplicationLoop:
        """Return a loop other than ``blocked``; create one unless there already is another."""
        async with self._making:
            present = self._loops.get(app)
            if present is not None and present is not blocked:
                return present
            loop = ApplicationLoop()
            await loop.start()
            self._loops[app] = loop
            if blocked is not None:
                self._blocked.append(blocked)
            return loop
