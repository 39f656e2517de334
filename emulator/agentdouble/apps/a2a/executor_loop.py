"""Executors run beside the server's loop, and what they send comes over in order.

An executor is async and yet may block: the platform's own run_code does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Union

from a2a.server.events import Event, EventQueue
from a2a.types import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

from agentdouble.agents.cross_loop_queue import CrossLoopQueue
from agentdouble.agents.loops import AgentLoops, Turn
from agentdouble.apps.a2a import writable
from agentdouble.errors import TurnTimeoutError

Work = Callable[[EventQueue], Coroutine[Any, Any, None]]
Hear = Callable[[Event], Awaitable[None]]

_EVENTS = (Message, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent)


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None = None


_Item = Union[Event, _Ended]  # noqa: UP007 (evaluated, also on Python 3.10)


class ExecutorLoop:
    """Runs what users wrote; on the caller's loop until it is ``open``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loops: AgentLoops | None = None

    def open(self) -> None:
        """Run on loops of its own from now on."""
        self._loops = AgentLoops()

    async def close(self) -> None:
        """Cancel what runs and end the loops."""
        loops, self._loops = self._loops, None
        if loops is not None:
            await loops.close()

    async def run(self, work: Work, hear: Hear, limit_s: float) -> None:
        """Run work and hear its events here, each before the next; raise what it raises.

        Raises TurnTimeoutError, and cancels the work, if it takes longer than ``limit_s``.
        Cancelling this cancels the work, and waits for nothing.
        """
        out: CrossLoopQueue[_Item] = CrossLoopQueue()
        outbox = _Outbox(out)
        running = await self._start(work, outbox, out)
        limit = asyncio.get_running_loop().call_later(
            limit_s, lambda: out.put(_Ended(TurnTimeoutError(limit_s)))
        )
        try:
            while True:
                for item in await out.take():
                    if isinstance(item, _Ended):
                        return running.ended(item)
                    await hear(item)
        finally:
            limit.cancel()
            outbox.closed = True
            running.cancel()

    async def _start(self, work: Work, outbox: _Outbox, out: CrossLoopQueue[_Item]) -> _Running:
        if self._loops is None:
            return _Running(asyncio.ensure_future(_work(work, outbox, out)))
        return _Running(await self._loops.submit(self._name, lambda: _work(work, outbox, out)))


class _Running:
    """Work that has been started, until its end has been heard."""

    def __init__(self, work: Turn | asyncio.Future[None]) -> None:
        self._work = work
        self._over = False

    def ended(self, end: _Ended) -> None:
        """Raise what the work has raised."""
        self._over = not isinstance(end.error, TurnTimeoutError)
        if end.error is not None:
            raise end.error

    def cancel(self) -> None:
        """Cancel the work unless it has ended: that would wake its loop for nothing."""
        if not self._over:
            self._work.cancel()
        elif isinstance(self._work, Turn):
            self._work.settle()


async def _work(work: Work, outbox: _Outbox, out: CrossLoopQueue[_Item]) -> None:
    try:
        await work(outbox)
    except asyncio.CancelledError as error:
        # a cancellation from within is the executor's own and no reason to leave the caller waiting
        out.put(_Ended(RuntimeError(f"It was cancelled from within: {error!r}")))
        raise
    except BaseException as error:  # sys.exit() too: it would end the loop
        out.put(_Ended(error if isinstance(error, Exception) else RuntimeError(repr(error))))
    else:
        out.put(_Ended())


class _Outbox(EventQueue):
    """The event queue that an executor sees."""

    def __init__(self, out: CrossLoopQueue[_Item]) -> None:
        self._out = out
        self._waiting = asyncio.Lock()
        self.closed = False

    async def enqueue_event(self, event: Event) -> None:
        """Send an event, and wait while too many are there.

        Raises TypeError for anything else, and ValueError for what cannot be written.
        """
        if not isinstance(event, _EVENTS):
            raise TypeError(
                f"The event queue takes a Message, a Task, a TaskStatusUpdateEvent or a "
                f"TaskArtifactUpdateEvent, not a value of type {type(event).__name__}."
            )
        writable.check(event)
        if self.closed:  # by the end of the turn: nobody hears it
            return
        twin = type(event)()
        twin.CopyFrom(event)  # the executor may go on changing what it has sent
        self._out.put(twin)
        if self._out.full:
            async with self._waiting:  # one maker at a time, as the handover has it
                if self._out.full and not self.closed:
                    await self._out.room()
