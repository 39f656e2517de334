"""The loop of applications, in a thread of its own.

An entrypoint is async and may still block: the platform's own run_code is a blocking call. On the
server's loop that would stop the probes (PRB-06). A double that serves both an application and its
sandbox would wait for itself forever. So a served application, and the async tools of an MCPApp,
run on a loop in a separate thread. Crossing to it costs a tool call some 0.1 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextvars import Context, copy_context
from typing import Any, TypeVar

from agentdouble.server.cross_loop_queue import CrossLoopQueue
from agentdouble.server.event_loops import run

STOP_WITHIN_S = 2.0
_ITERATED_ROOM = 16

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ApplicationLoop:
    """A loop in its own thread that runs coroutines and async iterators.

    Before ``start()`` and after ``stop()`` they run on the caller's loop.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._calls: deque[tuple[Callable[[], object], Context]] = deque()

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
        loop.call_soon_threadsafe(self._make_calls)
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
        # Each wake makes two threads compete for the interpreter. One for all requests that arrive
        # together saves a twelfth of the CPU of 16 runs at once.
        self._calls.append((function, copy_context()))
        if len(self._calls) == 1:  # else a wake is due, or the thread takes calls just now
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._make_calls)

    def _make_calls(self) -> None:
        loop = asyncio.get_running_loop()
        while self._calls:
            function, context = self._calls.popleft()
            loop.call_soon(function, context=context)

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


class _End:
    """The end of an iterator."""


@contextlib.contextmanager
def containing_exit() -> Iterator[None]:
    """Turn an exit, which would end the loop's thread, into ApplicationExitError."""
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
