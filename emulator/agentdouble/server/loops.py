"""Event loops: those that a double serves in, and those of applications, each in its own thread.

On a standard event loop a frozen clock (freezegun, time-machine 2) freezes every timer of the
server. So our loop has its own clock that cannot be frozen.

An entrypoint is async and may still block: the platform's own run_code is a blocking call. On the
server's loop that would stop the probes (PRB-06). A double that serves both an application and its
sandbox would wait for itself forever. So a served application, and the async tools of an MCPApp,
run on a loop in a separate thread. Crossing to it costs a tool call some 0.1 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from agentdouble.core.imports import import_now
from agentdouble.server import exhaustion

T = TypeVar("T")


def _unfreezable_clock() -> Callable[[], float]:
    # A closure, because freezegun rewrites the attributes of modules. And not time.monotonic,
    # because time-machine before 3 rewrites that function itself, wherever it is kept.
    perf_counter = time.perf_counter

    def read() -> float:
        return perf_counter()

    return read


class SteadyLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers continue while the process's clocks are frozen."""

    _clock = staticmethod(_unfreezable_clock())

    def time(self) -> float:
        """Return seconds on a monotonic clock that cannot be frozen."""
        return self._clock()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop if it is installed, or a loop that ignores frozen clocks."""
    if importlib.util.find_spec("uvloop") is not None:
        import_now("uvloop")
        import uvloop  # optional

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return SteadyLoop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop of ours and clean up all its tasks."""
    loop = new_event_loop()
    loop.set_exception_handler(exhaustion.handle)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            _finish(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    with contextlib.suppress(RuntimeError):  # the interpreter exits: it has ended those threads
        loop.run_until_complete(loop.shutdown_default_executor())


STOP_WITHIN_S = 2.0
ROOM = 64

_ITERATED_ROOM = 16
_log = logging.getLogger(__name__)


class ApplicationLoop:
    """A loop in its own thread that runs coroutines and async iterators.

    Before ``start()`` and after ``stop()`` they run on the caller's loop.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Start the thread and return when its loop runs."""
        caller_loop = asyncio.get_running_loop()
        running, self._ended = asyncio.Event(), asyncio.Event()

        def work() -> None:
            try:
                run(self._run_until_stopped(lambda: caller_loop.call_soon_threadsafe(running.set)))
            finally:
                with contextlib.suppress(RuntimeError):  # the other loop has closed meanwhile
                    caller_loop.call_soon_threadsafe(self._ended.set)

        self._thread = threading.Thread(target=work, name="agentdouble-app", daemon=True)
        self._thread.start()
        up = asyncio.ensure_future(running.wait())
        try:
            await asyncio.shield(up)
        except asyncio.CancelledError:  # the thread runs, and nothing else would end it
            await up
            await self.stop()
            raise

    async def stop(self) -> None:
        """Cancel all running work, end the thread and return when it has ended.

        If the code blocks its thread for longer than STOP_WITHIN_S, the thread stays: it is a
        daemon, and nothing can end it.
        """
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(self._stopping.set)
        # No thread waits for the end, because at the interpreter's exit no thread can be started.
        try:
            await asyncio.wait_for(self._ended.wait(), STOP_WITHIN_S)
        except asyncio.TimeoutError:
            _log.warning("Application code blocks its thread, which is left behind.")
            return
        thread.join()

    async def _run_until_stopped(self, running: Callable[[], object]) -> None:
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        running()
        await self._stopping.wait()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function on the loop soon; raise RuntimeError if the loop does not run."""
        if self._loop is None:
            raise RuntimeError("This loop has not been started, or has been stopped.")
        self._loop.call_soon_threadsafe(function)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; cancel it if the caller is cancelled."""
        contained = _contain_exit(coroutine)
        if self._loop is None:
            return await contained
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(contained, self._loop))

    async def iterate(self, items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """Yield the items of an async iterator when they arrive; on close, cancel the iterator."""
        queue: CrossLoopQueue[T | _End] = CrossLoopQueue(_ITERATED_ROOM)
        # One task from beginning to end: a generator may hold a cancel scope open across a yield,
        # and a cancel scope belongs to one task.
        pumping = _contain_exit(_pump(items, queue))
        loop = self._loop or asyncio.get_running_loop()
        pump = asyncio.run_coroutine_threadsafe(pumping, loop)
        pump.add_done_callback(lambda _: queue.put(_End()))
        try:
            while True:
                for item in await queue.take():
                    if isinstance(item, _End):
                        await asyncio.wrap_future(pump)
                        return
                    yield item
        finally:
            pump.cancel()


class ApplicationExitError(Exception):
    """Application code tried to end its process (``sys.exit()``); only its request ends."""


class CrossLoopQueue(Generic[T]):
    """A queue from one producer task on any loop to one task on the loop that makes the queue.

    Waking a loop in another thread costs a system call and a thread switch. So the producer wakes
    the consumer once for all items that are there by then. The order is kept. A producer that
    waits for ``wait_for_room()`` when the queue is ``full`` is at most ``size`` items ahead.

    A consumer that lingers lets more items arrive for so long after those that it took, unless one
    is urgent. A producer has as long to put more after an item that can wait.
    """

    def __init__(self, size: int = ROOM, *, linger_s: float = 0.0) -> None:
        self._size = size
        self._linger_s = linger_s
        self._lingering = False
        self._here = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._waking = False
        self._soon: asyncio.TimerHandle | None = None
        self._items: deque[T] = deque()
        self._producer: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def put(self, item: T, *, urgent: bool = False) -> None:
        """Put an item in even if the queue is full; the producer calls this."""
        self._items.append(item)
        if not self._waking or (self._lingering and (urgent or self.full)):
            self._wake()

    def put_soon(self, item: T) -> None:
        """Put an item in that can wait for the next one, or until the consumer has lingered."""
        self._items.append(item)
        if not self._waking and self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(self._linger_s, self._wake)

    def _wake(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._waking = True
        self._here.call_soon_threadsafe(self._arrived.set)

    @property
    def full(self) -> bool:
        """Whether the producer should wait for ``wait_for_room()``."""
        return len(self._items) >= self._size

    async def wait_for_room(self) -> None:
        """Wait until the queue is not full; call it on the producer's loop."""
        has_room = asyncio.Event()
        self._producer = asyncio.get_running_loop(), has_room
        if self.full:  # check again, now that the consumer can see the event
            await has_room.wait()
        self._producer = None

    async def take(self) -> list[T]:
        """Wait for items and return all that are there; call it on the consumer's loop."""
        if self._linger_s and self._waking and not self._items:
            await self._linger()
        while not self._items:
            self._waking = False
            if self._items:  # an item arrived before the producer saw that it must wake us
                break
            await self._arrived.wait()
            self._arrived.clear()
        items = [self._items.popleft() for _ in range(len(self._items))]
        producer = self._producer  # once: the producer's thread clears it when it has room
        if producer is not None:
            loop, event = producer
            loop.call_soon_threadsafe(event.set)
        return items

    async def _linger(self) -> None:
        """Wait a moment, or until the producer wakes us for an urgent item or a full queue."""
        self._lingering = True
        if not self._items:  # check again, now that the producer can see that we linger
            timer = self._here.call_later(self._linger_s, self._arrived.set)
            await self._arrived.wait()
            self._arrived.clear()
            timer.cancel()
        self._lingering = False


class _End:
    """The end of an iterator."""


@contextlib.contextmanager
def containing_exit() -> Iterator[None]:
    """Raise ApplicationExitError for an exit inside, which would end the loop's thread."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise ApplicationExitError(f"{type(error).__name__}: {error}") from error


async def _contain_exit(coroutine: Coroutine[Any, Any, T]) -> T:
    with containing_exit():
        return await coroutine


async def _pump(items: AsyncIterator[T], queue: CrossLoopQueue[T | _End]) -> None:
    """Put the items into a queue, no faster than the consumer takes them."""
    try:
        async for item in items:
            queue.put(item)
            if queue.full:
                await queue.wait_for_room()
            else:
                await asyncio.sleep(0)  # let other tasks run, even if the iterator never waits
    finally:
        aclose = getattr(items, "aclose", None)
        if aclose is not None:
            await aclose()
