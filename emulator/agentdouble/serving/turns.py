"""The turns in which connections are read and answered: a few in each step of the event loop.

Without turns, data from thousands of connections would be read in one step. Every other call would
wait for all of it at each of its own steps, and an answer takes some thirty steps. The number of
requests is not limited, because many are long and idle. A session with its own user counts as its
own caller.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum

IN_A_STEP = 8  # turns; more make steps longer, fewer cost ordinary calls

Turn = Callable[[], None]


class Rank(IntEnum):
    """The order of connections: an answered one, a new one, then one that sends more and more."""

    KNOWN = 0
    NEW = 1
    FURTHER = 2


class Turns:
    """The turns of one server's connections; belongs to one event loop.

    The last turn of each step is for a lower rank. Within a rank callers take turns one after
    another, however many connections each has. The newest and the oldest of a caller's new
    connections alternate: earlier ones do not delay a new one, and a stream of new ones does not
    delay an old one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = tuple(_Waiting(newest=rank is Rank.NEW) for rank in Rank)
        self._left = IN_A_STEP
        self._stepping = False

    def take(self, rank: Rank) -> bool:
        """Return whether a turn is free now; if so, take it."""
        if not self._left or (self._stepping and any(self._waiting[: rank + 1])):
            return False
        self._left -= 1
        if not self._left:
            self._step_soon()
        return True

    def wait(self, turn: Turn, rank: Rank, caller: int) -> None:
        """Call ``turn`` when there is a turn for it; ``caller`` owns the connection."""
        self._waiting[rank].add(turn, caller)
        self._step_soon()

    def leave(self, turn: Turn, caller: int) -> None:
        """Stop waiting."""
        for waiting in self._waiting:
            waiting.remove(turn, caller)

    def _step_soon(self) -> None:
        if not self._stepping:
            self._stepping = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._stepping = False
        self._left = IN_A_STEP
        while self._left and any(self._waiting):
            self._left -= 1
            self._next()()
        if not self._left:
            self._step_soon()

    def _next(self) -> Turn:
        waiting = [one for one in self._waiting if one]
        return (waiting[0] if self._left else waiting[-1]).pop()


class _Waiting:
    """The waiting turns of one rank, by caller; ``newest``: taken also from the end."""

    def __init__(self, *, newest: bool) -> None:
        self._newest = newest
        self._by_caller: OrderedDict[int, _Line] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._by_caller)

    def add(self, turn: Turn, caller: int) -> None:
        line = self._by_caller.get(caller)
        if line is None:
            line = self._by_caller[caller] = _Line()
        line.turns[turn] = None

    def remove(self, turn: Turn, caller: int) -> None:
        line = self._by_caller.get(caller)
        if line is not None:
            line.turns.pop(turn, None)
            if not line.turns:
                del self._by_caller[caller]

    def pop(self) -> Turn:
        caller, line = self._by_caller.popitem(last=False)
        line.from_the_end = self._newest and not line.from_the_end
        turn, _ = line.turns.popitem(last=line.from_the_end)
        if line.turns:
            self._by_caller[caller] = line  # behind the others
        return turn


class _Line:
    """The turns that one caller waits for, in the order of their arrival."""

    def __init__(self) -> None:
        self.turns: OrderedDict[Turn, None] = OrderedDict()
        self.from_the_end = False
