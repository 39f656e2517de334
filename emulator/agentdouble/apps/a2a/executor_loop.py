"""Runs executors on loops beside the server's; their events come over in order.

An executor is async, yet may block: the platform's own run_code does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Union

from a2a.server.events import Event, EventQueue
from a2a.types import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

from agentdouble.agents.loops import AgentLoops, Turn
from agentdouble.application_loop import CrossLoopQueue
from agentdouble.apps.a2a import writable
from agentdouble.errors import TurnTimeoutError

Work = Callable[[EventQueue], Coroutine[Any, Any, None]]
Receive = Callable[[Event], Awaitable[None]]

_EVENTS = (Message, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent)


@dataclass(frozen=True)
class _Finished:
    error: BaseException | None = None


_Item = Union[Event, _Finished]  # noqa: UP007 (evaluated, also on Python 3.10)


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

    async def run(self, work: Work, receive: Receive, limit_s: float) -> None:
        """Run work and receive its events here, each before the next; raise what it raises.

        Raises TurnTimeoutError, and cancels the work, if it takes longer than ``limit_s``.
        Cancelling this cancels the work without waiting for it.
        """
        queue: CrossLoopQueue[_Item] = CrossLoopQueue()
        outbox = _Outbox(queue)
        running = await self._start(work, outbox, queue)
        limit = asyncio.get_running_loop().call_later(
            limit_s, lambda: queue.put(_Finished(TurnTimeoutError(limit_s)))
        )
        try:
            while True:
                for item in await queue.take():
                    if isinstance(item, _Finished):
                        return running.finished(item)
                    await receive(item)
        finally:
            limit.cancel()
            outbox.closed = True
            running.cancel()

    async def _start(self, work: Work, outbox: _Outbox, queue: CrossLoopQueue[_Item]) -> _Running:
        if self._loops is None:
            return _Running(asyncio.ensure_future(_work(work, outbox, queue)))
        return _Running(await self._loops.submit(self._name, lambda: _work(work, outbox, queue)))


class _Running:
    """Work that has been started, until its end is known."""

    def __init__(self, work: Turn | asyncio.Future[None]) -> None:
        self._work = work
        self._is_over = False

    def finished(self, end: _Finished) -> None:
        """Raise the error that the work has raised."""
        self._is_over = not isinstance(end.error, TurnTimeoutError)
        if end.error is not None:
            raise end.error

    def cancel(self) -> None:
        """Cancel the work unless it has ended: that would wake its loop for nothing."""
        if not self._is_over:
            self._work.cancel()
        elif isinstance(self._work, Turn):
            self._work.stop_watching()


async def _work(work: Work, outbox: _Outbox, queue: CrossLoopQueue[_Item]) -> None:
    try:
        await work(outbox)
    except asyncio.CancelledError as error:
        # the executor has cancelled itself: the caller must not wait for ever
        queue.put(_Finished(RuntimeError(f"It was cancelled from within: {error!r}")))
        raise
    except BaseException as error:  # sys.exit() too: it would end the loop
        queue.put(_Finished(error if isinstance(error, Exception) else RuntimeError(repr(error))))
    else:
        queue.put(_Finished())


class _Outbox(EventQueue):
    """The event queue that an executor sees."""

    def __init__(self, queue: CrossLoopQueue[_Item]) -> None:
        self._queue = queue
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
        if self.closed:  # the turn has ended: nobody receives it
            return
        copy = type(event)()
        copy.CopyFrom(event)  # the executor may change what it has sent
        self._queue.put(copy)
        if self._queue.full:
            async with self._waiting:  # the queue has one producer
                if self._queue.full and not self.closed:
                    await self._queue.room()
