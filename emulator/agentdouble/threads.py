"""Work that blocks, done beside the event loop."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def beside(function: Callable[[], T]) -> T:
    """Return what a blocking function returns, run in a thread.

    At the interpreter's end, when threads take no more work but a double that nobody stopped
    still has to tidy up, it runs on the loop.
    """
    try:
        future = asyncio.get_running_loop().run_in_executor(None, function)
    except RuntimeError:
        return function()
    return await future


async def imported(*modules: str) -> None:
    """Import modules in a thread, if they are not yet: some take a third of a second."""
    missing = [name for name in modules if name not in sys.modules]
    if missing:
        await beside(lambda: [importlib.import_module(name) for name in missing])
