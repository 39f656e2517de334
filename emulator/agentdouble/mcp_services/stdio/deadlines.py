"""The time that each request has for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Deadlines:
    """Calls ``expired`` with each key that was begun ``patience_s`` ago and has not ended."""

    def __init__(self, patience_s: float, expired: Callable[[Any], Awaitable[None]]) -> None:
        self.patience_s = patience_s
        self._expired = expired
        self._timers: dict[Any, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    def begin(self, key: Any) -> None:
        """Give a key its whole time, also if it has begun already."""
        self.end(key)
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(self.patience_s, self._expire, key)

    def end(self, key: Any) -> None:
        """Forget a key."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Forget all keys."""
        for key in [*self._timers]:
            self.end(key)
        for task in self._tasks:
            task.cancel()

    def _expire(self, key: Any) -> None:
        self._timers.pop(key, None)
        task = asyncio.ensure_future(self._expired(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
