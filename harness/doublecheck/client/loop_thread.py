"""Run a coroutine in a thread with its own event loop; its outputs are handled in this thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from doublecheck.values.executions import LiveOutput, OnOutput

T = TypeVar("T")
Work = Callable[[OnOutput], Coroutine[Any, Any, T]]


def run(work: Work[T], on_output: OnOutput) -> T:
    """Return the result of ``work``. Call ``on_output`` in this thread with each of its outputs.

    An error in ``on_output`` cancels the work, and is raised after the work has ended. After a
    KeyboardInterrupt the last outputs are still passed on; a second one stops that.
    """
    thread = _Thread(work)
    try:
        thread.pass_on(on_output)
        return thread.result()
    except KeyboardInterrupt:
        thread.cancel()
        thread.pass_on(on_output)
        raise
    finally:
        thread.end()


class _Thread(Generic[T]):
    """A thread that runs the work; it starts immediately."""

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self._outputs: SimpleQueue[LiveOutput | None] = SimpleQueue()
        self._outcome: Future[T] = Future()
        self._begun = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[T]
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="doublecheck", daemon=True
        )
        self._thread.start()

    def pass_on(self, on_output: OnOutput) -> None:
        """Call ``on_output`` with each output until the work ends."""
        while (output := self._outputs.get()) is not None:
            on_output(output)

    def result(self) -> T:
        """Wait for the work and return its result."""
        return self._outcome.result()

    def cancel(self) -> None:
        """Cancel the work if it is still running."""
        self._begun.wait()
        if not self._outcome.done():
            with suppress(RuntimeError):  # the loop has just been closed, so the work has ended
                self._loop.call_soon_threadsafe(self._task.cancel)

    def end(self) -> None:
        """Cancel the work if it is still running, and join the thread."""
        self.cancel()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._outcome.set_result(_run(self._main()))
        except BaseException as error:
            self._outcome.set_exception(error)
        finally:
            self._begun.set()
            for _ in range(2):  # an interrupt may come when the first has just been taken
                self._outputs.put(None)

    async def _main(self) -> T:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._work(self._outputs.put))
        self._begun.set()
        return await self._task


def _run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop and close it, which nest_asyncio's ``asyncio.run`` does not."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
