"""Items on their way from one event loop to another, many at a wake-up.

Waking another thread's loop costs a system call and a change of threads, so the maker wakes the
taker once for everything that is there by then. Order is kept, and the maker is at most
``ROOM`` items ahead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

ROOM = 64


class CrossLoopQueue(Generic[T]):
    """A queue from one task on any loop to one task on the loop that makes it."""

    def __init__(self) -> None:
        self._here = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._waking = False
        self._items: deque[T] = deque()
        self._maker: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def put(self, item: T) -> None:
        """Hand an item over, whether or not there is room; from the maker's side."""
        self._items.append(item)
        if not self._waking:
            self._waking = True
            self._here.call_soon_threadsafe(self._arrived.set)

    @property
    def full(self) -> bool:
        """Whether the maker should wait for ``room()``."""
        return len(self._items) >= ROOM

    async def room(self) -> None:
        """Wait until there is room again; on the maker's loop."""
        taken = asyncio.Event()
        self._maker = asyncio.get_running_loop(), taken
        if self.full:  # still, now that the taker knows whom to wake
            await taken.wait()
        self._maker = None

    async def take(self) -> list[T]:
        """Wait for items and return those that are there; on the taker's loop."""
        while not self._items:
            self._waking = False
            if self._items:  # arrived before the maker could know that it must wake us
                break
            await self._arrived.wait()
            self._arrived.clear()
        taken = [self._items.popleft() for _ in range(len(self._items))]
        maker = self._maker  # once: the maker's own thread takes it away when it has room
        if maker is not None:
            loop, event = maker
            loop.call_soon_threadsafe(event.set)
        return taken
