"""An event loop of its own for application code, in a thread of its own.

An entrypoint is async, yet may block: the platform's own run_code is a blocking call. On the
server's loop that would stop the probes (PRB-06), and a double that serves both the
application and its sandbox would wait for itself for ever. So a served application runs on a
loop beside the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from agentdouble import serving

T = TypeVar("T")

STOP_WITHIN_S = 2.0

_BUFFERED = 16
_log = logging.getLogger(__name__)
_END = object()


class ApplicationLoop:
    """Runs coroutines and async iterators on a loop in a thread of its own.

    Before ``start()`` and after ``stop()`` they run on the caller's loop.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Start the thread and return when its loop runs."""
        here = asyncio.get_running_loop()
        running, self._ended = asyncio.Event(), asyncio.Event()

        def live() -> None:
            try:
                serving.run(self._live(lambda: here.call_soon_threadsafe(running.set)))
            finally:
                with contextlib.suppress(RuntimeError):  # left behind, and that loop has closed
                    here.call_soon_threadsafe(self._ended.set)

        self._thread = threading.Thread(target=live, name="agentdouble-app", daemon=True)
        self._thread.start()
        up = asyncio.ensure_future(running.wait())
        try:
            await asyncio.shield(up)
        except asyncio.CancelledError:  # the thread is there, and nobody else would end it
            await up
            await self.stop()
            raise

    async def stop(self) -> None:
        """Cancel what runs, end the thread and return when it has ended.

        A thread whose code blocks for longer than STOP_WITHIN_S is left behind: it is a daemon,
        and nothing can end it. It starts no thread to wait in: at the interpreter's exit none
        can be started.
        """
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(self._stopping.set)
        try:
            await asyncio.wait_for(self._ended.wait(), STOP_WITHIN_S)
        except asyncio.TimeoutError:
            _log.warning("Application code blocks its thread, which is left behind.")
            return
        thread.join()

    async def _live(self, running: Callable[[], object]) -> None:
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        running()
        await self._stopping.wait()

    def begin(self, function: Callable[[], object]) -> None:
        """Call a function on the loop, soon; the loop must have been started."""
        if self._loop is None:
            raise RuntimeError("This loop has not been started, or has been stopped.")
        self._loop.call_soon_threadsafe(function)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; cancelling the caller cancels it."""
        contained = _contained(coroutine)
        if self._loop is None:
            return await contained
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(contained, self._loop))

    async def iterate(self, items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """Yield what an async iterator yields, as it comes; closing this cancels it.

        The iterator runs in one task from beginning to end, because a generator may hold
        a cancel scope open across a yield, and that belongs to one task.
        """
        here = asyncio.get_running_loop()
        hand_over: asyncio.Queue[Any] = asyncio.Queue()
        room = asyncio.Semaphore(_BUFFERED)

        async def put(item: T) -> None:
            await room.acquire()
            hand_over.put_nowait(item)

        pumping = _contained(_pump(items, put, here))
        pump = asyncio.run_coroutine_threadsafe(pumping, self._loop or here)
        pump.add_done_callback(lambda _: here.call_soon_threadsafe(hand_over.put_nowait, _END))
        try:
            while (item := await hand_over.get()) is not _END:
                room.release()
                yield item
            await asyncio.wrap_future(pump)
        finally:
            pump.cancel()


class ApplicationExitError(Exception):
    """Application code asked its process to end (``sys.exit()``); only its request does."""


async def _contained(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; what would end the loop and its thread becomes an ordinary exception."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise ApplicationExitError(f"{type(error).__name__}: {error}") from error


async def _pump(
    items: AsyncIterator[T],
    put: Callable[[T], Coroutine[Any, Any, None]],
    there: asyncio.AbstractEventLoop,
) -> None:
    """Hand items over to another loop, at most as fast as they are taken there."""
    try:
        async for item in items:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(put(item), there))
    finally:
        aclose = getattr(items, "aclose", None)
        if aclose is not None:
            await aclose()
