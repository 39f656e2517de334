"""The order in which changes are written: many together, and each set whole or not at all.

Where a write of many fails, each set of changes is tried alone. One that is refused is taken back,
after the later ones that share a record with it. What nothing can take back, the end of a sandbox
session, is tried again until it is written.

A double that stops writes no ends: the next one finds sessions without an end and says that it
was restarted, the same as after a kill.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from agentdouble.errors import StateError
from agentdouble.state.changes import Undo

RETRY_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Row:
    """A record as it is written; None removes it."""

    kind: str
    id: str
    record: str | None

    @property
    def name(self) -> tuple[str, str]:
        """What it is found by."""
        return self.kind, self.id


Commit = Callable[[Sequence[Row]], Awaitable[None]]


@dataclass(eq=False)
class Changes:
    """Rows that belong together; without ``undo`` they are kept until they can be written.

    ``names`` are those of the rows, and whatever else of its owner's memory they change.
    """

    rows: tuple[Row, ...]
    undo: Undo | None
    names: frozenset[Hashable]
    done: asyncio.Future[None] = field(default_factory=lambda: _future())


class Writing:
    """Writes changes in the order in which they come; belongs to one event loop.

    What comes while something is written is written together afterwards. Where that fails, each
    set is tried alone. A set that is refused is taken back, and with it every later one that
    shares a name with it, the latest first: so each finds memory as it left it.
    """

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._kept: list[Changes] = []
        self._batch: list[Changes] = []
        self._queued: list[Changes] = []
        self._worker: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.failure: StateError | None = None

    def add(self, rows: Iterable[Row], undo: Undo | None, about: Iterable[Hashable]) -> Changes:
        """Queue changes; ``done`` of what is returned tells what has become of them."""
        changes = tuple(rows)
        names = frozenset({*about, *(row.name for row in changes)})
        added = Changes(changes, undo, names)
        self._queued.append(added)
        self._start()
        return added

    async def saved(self) -> None:
        """Return when everything that was added before is written; raise StateError."""
        self._start()
        waiting = [one.done for one in (*self._kept, *self._batch, *self._queued)]
        if waiting:
            await asyncio.wait(waiting)
        for one in waiting:
            one.result()

    async def settled(self, name: Hashable) -> None:
        """Return when nothing of that name is under way any more, whatever came of it."""
        waiting = {one.done for one in (*self._batch, *self._queued) if name in one.names}
        if waiting:
            await asyncio.wait(waiting)

    async def close(self) -> None:
        """Try once more to write what is left; tell what cannot be written."""
        self._start()
        if self._worker is not None:
            await asyncio.wait({self._worker})
        if self._timer is not None:
            self._timer.cancel()
        if self._kept:
            lost = ", ".join(f"{row.kind} {row.id}" for one in self._kept for row in one.rows)
            _log.error("The state is closed without the last of: %s. %s", lost, self.failure)

    def _start(self) -> None:
        if self._worker is None and (self._queued or self._kept):
            self._worker = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        try:
            while self._queued or self._kept:
                self._batch = [*self._kept, *self._queued]
                self._kept, self._queued = [], []
                await self._write(self._batch)
                self._batch = []
                if self._kept and not self._queued:
                    self._try_later()
                    return
        finally:
            self._worker = None

    def _try_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._start)

    async def _write(self, batch: Sequence[Changes]) -> None:
        error = await self._try(batch)
        if error is None:
            _accept(batch)
        elif len(batch) == 1:
            self._refuse(batch, error)
        else:
            await self._write_each(batch)

    async def _write_each(self, batch: Sequence[Changes]) -> None:
        """Write one after the other; refuse what fails and what builds upon it."""
        failed: list[Changes] = []
        names: set[Hashable] = set()
        last: StateError | None = None
        for one in batch:
            error = last if names & one.names else await self._try([one])
            if error is None:
                _accept([one])
                continue
            last = error
            names |= one.names
            failed.append(one)
        if last is not None:
            self._refuse(failed, last)

    async def _try(self, batch: Sequence[Changes]) -> StateError | None:
        rows = {row.name: row for one in batch for row in one.rows}
        try:
            await self._commit(list(rows.values()))
        except StateError as error:
            self.failure = error
            return error
        self.failure = None
        return None

    def _refuse(self, failed: Sequence[Changes], error: StateError) -> None:
        """Take back what failed and what came after it and builds upon it; keep the rest."""
        refused = [one for one in failed if one.undo is not None]
        names = set[Hashable]().union(*(one.names for one in refused))
        kept, queued = [one for one in failed if one.undo is None], self._queued
        self._queued = []
        for one in queued:
            if names & one.names:
                refused.append(one)
                names |= one.names
            else:
                self._queued.append(one)
        self._kept = [one for one in kept if not names & one.names]
        for one in reversed(refused):
            _take_back(one)
        for one in (*refused, *kept):
            one.done.set_exception(StateError(str(error), where=error.where, status=error.status))
        for one in self._kept:
            one.done = _future()  # for who waits for the next try


def _accept(batch: Sequence[Changes]) -> None:
    for one in batch:
        one.done.set_result(None)


def _take_back(one: Changes) -> None:
    try:
        if one.undo is not None:
            one.undo()
    except Exception:  # the others must be taken back and told all the same
        _log.exception("What was refused could not be taken back: %s.", one.names)


def _future() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda one: one.cancelled() or one.exception())  # nobody may wait
    return future
