"""Event loops whose timers continue while the process's clocks are frozen.

On a standard event loop a frozen clock (freezegun, time-machine 2) freezes every timer of the
server. So our loop has its own clock that cannot be frozen.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

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
