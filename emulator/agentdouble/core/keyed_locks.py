"""Locks by key: work that has a key in common takes turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class KeyedLocks:
    """A lock for each key that is in use."""

    def __init__(self) -> None:
        # Weak: a lock lives as long as somebody holds it or waits for it, so that there is always
        # one lock for a key, and none for keys that nobody uses.
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: Hashable) -> asyncio.Lock:
        """Return the lock of a key."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    @asynccontextmanager
    async def holding(self, *keys: Hashable) -> AsyncIterator[None]:
        """Hold the locks of keys. All callers must name them in the same order."""
        async with AsyncExitStack() as stack:
            for key in keys:
                await stack.enter_async_context(self.of(key))
            yield
