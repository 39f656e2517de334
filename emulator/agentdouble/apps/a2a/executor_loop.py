"""The loop on which users' executors run, and the queue between an executor and its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Union

from a2a.server.events import Event, EventQueue
from a2a.types import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToDict

from agentdouble.agents.loops import AgentLoops, LoopTask
from agentdouble.errors import TurnTimeoutError
from agentdouble.server.cross_loop_queue import CrossLoopQueue

Work = Callable[[EventQueue], Coroutine[Any, Any, None]]
Receive = Callable[[Event], Awaitable[None]]

_EVENTS = (Message, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent)


@dataclass(frozen=True)
class _Finished:
    error: BaseException | None = None


_Item = Union[Event, _Finished]  # noqa: UP007 (evaluated, also on Python 3.10)


class ExecutorLoop:
    """Runs users' executors, on the caller's loop until ``open`` is called."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loops: AgentLoops | None = None

    def open(self) -> None:
        """Run executors on separate loops from now on."""
        self._loops = AgentLoops()

    async def close(self) -> None:
        """Cancel the running executors and end the loops."""
        loops, self._loops = self._loops, None
        if loops is not None:
            await loops.close()

    async def run(self, work: Work, receive: Receive, limit_s: float) -> None:
        """Run work and receive its events here, one after the other; raise the error of the work.

        Raises TurnTimeoutError and cancels the work if it takes longer than ``limit_s``. If this is
        cancelled, it cancels the work and does not wait for it.
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
    """Work that has been started and whose end is not known yet."""

    def __init__(self, work: LoopTask | asyncio.Future[None]) -> None:
        self._work = work
        self._is_over = False

    def finished(self, end: _Finished) -> None:
        """Raise the work's error, if it raised one."""
        self._is_over = not isinstance(end.error, TurnTimeoutError)
        if end.error is not None:
            raise end.error

    def cancel(self) -> None:
        """Cancel the work unless it has ended, because that would wake its loop for nothing."""
        if not self._is_over:
            self._work.cancel()
        elif isinstance(self._work, LoopTask):
            self._work.stop_watching()


async def _work(work: Work, outbox: _Outbox, queue: CrossLoopQueue[_Item]) -> None:
    try:
        await work(outbox)
    except asyncio.CancelledError as error:
        # the executor has cancelled itself, and the caller must not wait forever
        queue.put(_Finished(RuntimeError(f"It cancelled itself: {error!r}")))
        raise
    except BaseException as error:  # also sys.exit(), which would end the loop
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
        """Send an event; wait while the queue is full.

        Raises TypeError for an object that is not an event, and an exception of protobuf for an
        event that cannot be written as JSON.
        """
        if not isinstance(event, _EVENTS):
            raise TypeError(
                f"The event queue accepts a Message, a Task, a TaskStatusUpdateEvent or a "
                f"TaskArtifactUpdateEvent, not a value of type {type(event).__name__}."
            )
        MessageToDict(event)  # one that JSON cannot represent would break every later response
        if self.closed:  # the turn has ended, so no caller receives the event
            return
        copy = type(event)()
        copy.CopyFrom(event)  # the executor may change the event after it has sent it
        self._queue.put(copy)
        if self._queue.full:
            async with self._waiting:  # the queue has one producer
                if self._queue.full and not self.closed:
                    await self._queue.wait_for_room()
