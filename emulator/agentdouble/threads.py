"""Functions that run blocking work in threads beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agentdouble.imports import are_whole, import_now

T = TypeVar("T")

_beginning = threading.Lock()
_imports: dict[tuple[str, ...], Future[None]] = {}


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


async def import_in_thread(*modules: str) -> None:
    """Import missing modules in a thread, because some take a third of a second.

    Callers that need the same modules at the same time wait for one import. It continues if one
    caller is cancelled. If it fails, all of them get the error, and the next call tries again.
    """
    if not are_whole(modules):
        await asyncio.wrap_future(_import_of(modules))


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


def _import_of(modules: tuple[str, ...]) -> Future[None]:
    """Return the running import of these modules; start one if there is none."""
    with _beginning:
        present = _imports.get(modules)
        if present is None or present.done():
            present = _imports[modules] = apart(lambda: import_now(*modules))
        return present
