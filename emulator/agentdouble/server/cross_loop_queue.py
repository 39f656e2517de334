"""A queue between two event loops that wakes the consumer once for many items."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

ROOM = 64
IDLE_STEPS = 8  # ADK's runner takes six from the last event of a model's agent to its end

T = TypeVar("T")


class CrossLoopQueue(Generic[T]):
    """A queue from one producer task on any loop to one task on the loop that makes the queue.

    Waking a loop in another thread costs a system call and a thread switch. So the producer wakes
    the consumer once for all items that are there by then. The order is kept. A producer that
    waits for ``wait_for_room()`` when the queue is ``full`` is at most ``size`` items ahead.

    A consumer that lingers waits that long for more items after it took some, unless one is urgent
    or the queue is full. After an item that can wait, a producer has the same time to put more. In
    a ``patient`` queue every item that is not urgent waits until the producer's loop has nothing
    else to do, or nearly so.
    """

    def __init__(self, size: int = ROOM, *, linger_s: float = 0.0, patient: bool = False) -> None:
        self._size = size
        self._linger_s = linger_s
        self._patient = patient
        self._lingering = False
        self._here = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._waking = False
        self._soon: asyncio.Handle | None = None
        self._items: deque[T] = deque()
        self._producer: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def put(self, item: T, *, urgent: bool = False) -> None:
        """Put an item in even if the queue is full; the producer calls this."""
        self._put(item, urgent=urgent, now=not self._patient)

    def put_soon(self, item: T) -> None:
        """Put in an item that can wait for the next one, or until the consumer has lingered."""
        self._put(item, urgent=False, now=False)

    def _put(self, item: T, *, urgent: bool, now: bool) -> None:
        self._items.append(item)
        must_wake = urgent or self.full
        if self._waking:
            if self._lingering and must_wake:
                self._wake()
        elif now or must_wake:
            self._wake()
        elif self._soon is None:
            self._wake_later()

    def _wake_later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._patient:
            self._soon = loop.call_soon(self._wake_when_idle, IDLE_STEPS)
        else:
            self._soon = loop.call_later(self._linger_s, self._wake)

    def _wake_when_idle(self, steps: int) -> None:
        """Wake the consumer after some steps of the loop, which takes them at once without work."""
        if steps:
            self._soon = asyncio.get_running_loop().call_soon(self._wake_when_idle, steps - 1)
        else:
            self._wake()

    def _wake(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._waking = True
        self._here.call_soon_threadsafe(self._arrived.set)

    @property
    def full(self) -> bool:
        """Whether the producer should wait for ``wait_for_room()``."""
        return len(self._items) >= self._size

    async def wait_for_room(self) -> None:
        """Wait until the queue is not full; call it on the producer's loop."""
        has_room = asyncio.Event()
        self._producer = asyncio.get_running_loop(), has_room
        if self.full:  # check again, now that the consumer can see the event
            await has_room.wait()
        self._producer = None

    async def take(self) -> list[T]:
        """Wait for items and return all that are there; call it on the consumer's loop."""
        if self._linger_s and self._waking and not self._items:
            await self._linger()
        while not self._items:
            self._waking = False
            if self._items:  # an item arrived before the producer saw that it must wake us
                break
            await self._arrived.wait()
            self._arrived.clear()
        items = [self._items.popleft() for _ in range(len(self._items))]
        producer = self._producer  # once: the producer's thread clears it when it has room
        if producer is not None:
            loop, event = producer
            loop.call_soon_threadsafe(event.set)
        return items

    async def _linger(self) -> None:
        """Wait a moment, or until the producer wakes us for an urgent item or a full queue."""
        self._lingering = True
        if not self._items:  # check again, now that the producer can see that we linger
            timer = self._here.call_later(self._linger_s, self._arrived.set)
            await self._arrived.wait()
            self._arrived.clear()
            timer.cancel()
        self._lingering = False
