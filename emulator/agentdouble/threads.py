"""Work that blocks, done beside the event loop."""

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
    """Return what a blocking function returns, run in a thread.

    At the interpreter's end, when threads take no more work but a double that nobody stopped
    still has to tidy up, it runs on the loop.
    """
    try:
        future = asyncio.get_running_loop().run_in_executor(None, function)
    except RuntimeError:
        return function()
    return await future


async def import_in_thread(*modules: str) -> None:
    """Import modules in a thread, if they are not yet: some take a third of a second.

    All who ask for the same at the same time wait for one import, which goes on when one of
    them is cancelled. What it raises they all hear; the next one to ask begins anew.
    """
    if not are_whole(modules):
        await asyncio.wrap_future(_import_of(modules))


def apart(function: Callable[[], T]) -> Future[T]:
    """Run a function in a thread of its own, which nobody waits for at the end.

    What may take long would hold up other work in the threads that all share. The future cannot
    be cancelled, so any number may wait for it.
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
    """Return the import of these modules that is under way; begin it if none is."""
    with _beginning:
        present = _imports.get(modules)
        if present is None or present.done():
            present = _imports[modules] = apart(lambda: import_now(*modules))
        return present
