"""Whose turn it is to be read and answered: a few connections in each step of the event loop.

What comes from thousands of connections at once would otherwise be taken up in one step, and
every call of others waits for the whole of it at each of its own steps.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum

IN_A_STEP = 8  # turns; more make steps longer, fewer cost ordinary calls


class Rank(IntEnum):
    """Who goes first: a connection that has been answered, a new one, one that asks on and on."""

    KNOWN = 0
    NEW = 1
    FURTHER = 2


class Turns:
    """The turns of one server's connections; belongs to one event loop.

    The last turn of each step is for a lower rank. Of the new connections the newest and the
    oldest go alternately: a crowd that came before does not hold up a new caller, nor does one
    that keeps coming hold up an old one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: tuple[OrderedDict[Callable[[], None], None], ...]
        self._waiting = tuple(OrderedDict() for _ in Rank)
        self._left = IN_A_STEP
        self._newest = True
        self._stepping = False

    def take(self, rank: Rank) -> bool:
        """Return whether a turn is to be had at once, which is then taken."""
        if not self._left or (self._stepping and any(self._waiting[: rank + 1])):
            return False
        self._left -= 1
        if not self._left:
            self._step_soon()
        return True

    def wait(self, turn: Callable[[], None], rank: Rank) -> None:
        """Call ``turn`` when it has come."""
        self._waiting[rank][turn] = None
        self._step_soon()

    def leave(self, turn: Callable[[], None]) -> None:
        """Wait no longer."""
        for waiting in self._waiting:
            waiting.pop(turn, None)

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

    def _next(self) -> Callable[[], None]:
        ranks = [rank for rank in Rank if self._waiting[rank]]
        rank = ranks[0] if self._left else ranks[-1]
        oldest = rank is not Rank.NEW or not self._newest
        if rank is Rank.NEW:
            self._newest = not self._newest
        return self._waiting[rank].popitem(last=not oldest)[0]
