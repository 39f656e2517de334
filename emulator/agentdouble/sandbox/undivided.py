"""Work that is not left half done when whoever awaits it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def undivided(work: Awaitable[T]) -> T:
    """Return what some work comes to; a cancellation meanwhile is raised when it has ended.

    For what takes a moment and gives something back: a process, its sockets, its files.
    """
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()
