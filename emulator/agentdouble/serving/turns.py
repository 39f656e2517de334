"""Whose turn it is to be read and answered: a few connections in each step of the event loop.

What comes from thousands of connections at once would otherwise be taken up in one step, and
every call of others waits for the whole of it at each of its own steps, of which an answer takes
some thirty. Requests are not limited in number, because many are long and idle. A session that is
a user of its own is a caller of its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum

IN_A_STEP = 8  # turns; more make steps longer, fewer cost ordinary calls

Turn = Callable[[], None]


class Rank(IntEnum):
    """Who goes first: a connection that has been answered, a new one, one that asks on and on."""

    KNOWN = 0
    NEW = 1
    FURTHER = 2


class Turns:
    """The turns of one server's connections; belongs to one event loop.

    The last turn of each step is for a lower rank, and within a rank callers go one after
    another, however many connections each has. Of a caller's new connections the newest and the
    oldest go alternately: those that came before do not hold up a new one, nor do those that
    keep coming hold up an old one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = tuple(_Waiting(newest=rank is Rank.NEW) for rank in Rank)
        self._left = IN_A_STEP
        self._stepping = False

    def take(self, rank: Rank) -> bool:
        """Return whether a turn is to be had at once, which is then taken."""
        if not self._left or (self._stepping and any(self._waiting[: rank + 1])):
            return False
        self._left -= 1
        if not self._left:
            self._step_soon()
        return True

    def wait(self, turn: Turn, rank: Rank, caller: int) -> None:
        """Call ``turn`` when it has come; ``caller`` is whoever's connection it is."""
        self._waiting[rank].add(turn, caller)
        self._step_soon()

    def leave(self, turn: Turn, caller: int) -> None:
        """Wait no longer."""
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
    """The turns of one rank that are waited for, by caller; ``newest``: also from the end."""

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
    """The turns that one caller waits for, in the order in which they came."""

    def __init__(self) -> None:
        self.turns: OrderedDict[Turn, None] = OrderedDict()
        self.from_the_end = False
