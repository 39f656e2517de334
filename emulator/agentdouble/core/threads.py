"""Functions that run blocking work in threads beside the event loop, and pause loops that poll."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agentdouble.core.imports import are_imported, import_now

T = TypeVar("T")
_BEAT_S = 0.25


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a blocking function in a thread and return its result.

    If the interpreter ends while a double still runs, threads take no more work. Then the function
    runs on the loop, so that the double can clean up.
    """
    try:
        future = asyncio.get_running_loop().run_in_executor(None, function)
    except RuntimeError:
        return function()
    return await future


async def pause(seconds: float) -> None:
    """Sleep until the quarter of a second that is nearest to ``seconds`` from now.

    So loops that poll wake together. With cold caches, each wake-up takes 0.2 ms.
    """
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(round((now + seconds) / _BEAT_S) * _BEAT_S - now)


async def import_in_thread(*modules: str) -> None:
    """Import missing modules in a thread, because some take a third of a second."""
    if not are_imported(modules):
        await run_in_thread(lambda: import_now(*modules))


def apart(function: Callable[[], T]) -> Future[T]:
    """Run a function in its own thread, which the interpreter does not wait for at its end.

    Work that may take long would block other work in the shared threads. The future cannot be
    cancelled, so any number of callers may wait for it.
    """
    done = Future[T]()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    try:
        threading.Thread(target=work, name="agentdouble-apart", daemon=True).start()
    except RuntimeError:  # no thread can be started any more
        work()
    return done
