"""Where agents run: each application's on a loop of its own, beside the server's.

An agent may block its loop, and then the server and other applications go on. A loop that does
not take up a new run within ``HELD_AFTER_S`` is held by such an agent: the run, and those after
it, go to a fresh loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from agentdouble.application_loop import ApplicationLoop

HELD_AFTER_S = 0.25

Start = Callable[[], Coroutine[Any, Any, None]]


class Turn:
    """A coroutine that was sent to an agents' loop and can be cancelled from the server's."""

    def __init__(self, start: Start) -> None:
        self._unclaimed = [start]  # whoever pops it runs it: two loops may have been asked
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._cancelled = False
        self.watch: asyncio.TimerHandle | None = None

    @property
    def begun(self) -> bool:
        """Whether a loop has taken it up."""
        return not self._unclaimed

    def begin(self) -> None:
        """Take it up, on the agents' loop, unless another loop has."""
        try:
            start = self._unclaimed.pop()
        except IndexError:
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(start())
        self._running = loop, task
        if self._cancelled:  # asked for after all that was there to cancel was this flag
            task.cancel()

    def settle(self) -> None:
        """Watch no longer whether it begins: it has."""
        if self.watch is not None:
            self.watch.cancel()
            self.watch = None

    def cancel(self) -> None:
        """Cancel it, from the server's loop; what has ended is left as it is."""
        self.settle()
        self._cancelled = True
        if self._running is not None:
            loop, task = self._running
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(task.cancel)


class AgentLoops:
    """One loop for each application, made when its first run comes."""

    def __init__(self) -> None:
        self._loops: dict[str, ApplicationLoop] = {}
        self._held: list[ApplicationLoop] = []
        self._making = asyncio.Lock()
        self._moving: set[asyncio.Task[None]] = set()

    async def submit(self, app: str, start: Start) -> Turn:
        """Have a coroutine run on the application's loop, with the caller's context."""
        loop = self._loops.get(app)
        if loop is None:
            loop = await self._fresh(app, None)
        turn = Turn(start)
        loop.begin(turn.begin)
        here = asyncio.get_running_loop()
        turn.watch = here.call_later(HELD_AFTER_S, self._see_begun, app, loop, turn)
        return turn

    async def close(self) -> None:
        """Cancel every run and end every loop."""
        while self._moving:  # not cancelled: a loop that is being made would be left behind
            await asyncio.gather(*self._moving, return_exceptions=True)
        loops = [*self._loops.values(), *self._held]
        self._loops.clear()
        self._held.clear()
        await asyncio.gather(*(loop.stop() for loop in loops))

    def _see_begun(self, app: str, loop: ApplicationLoop, turn: Turn) -> None:
        if turn.begun:
            return
        moving = asyncio.ensure_future(self._move(app, loop, turn))
        self._moving.add(moving)
        moving.add_done_callback(self._moving.discard)

    async def _move(self, app: str, held: ApplicationLoop, turn: Turn) -> None:
        fresh = await self._fresh(app, held)
        fresh.begin(turn.begin)

    async def _fresh(self, app: str, held: ApplicationLoop | None) -> ApplicationLoop:
        """Return a loop that is not ``held``, a new one unless somebody made one meanwhile."""
        async with self._making:
            present = self._loops.get(app)
            if present is not None and present is not held:
                return present
            fresh = ApplicationLoop()
            await fresh.start()
            self._loops[app] = fresh
            if held is not None:
                self._held.append(held)
            return fresh
