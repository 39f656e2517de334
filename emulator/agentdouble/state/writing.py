"""The order in which changes are written: many together, and each set completely or not at all.

If a write of many sets fails, each set is tried alone. A refused set is undone, after the later
sets that share a record with it. Changes that cannot be undone, such as the end of a sandbox
session, are tried again until they are written.

A double that stops does not write the ends of its sessions. The next double finds sessions without
an end and reports a restart, the same as after a kill.
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
    """A record in its written form; None removes it."""

    kind: str
    id: str
    record: str | None

    @property
    def name(self) -> tuple[str, str]:
        """The key of the record: its kind and id."""
        return self.kind, self.id


Commit = Callable[[Sequence[Row]], Awaitable[None]]


@dataclass(eq=False)
class Changes:
    """Rows that belong together; without ``undo`` they are kept until they can be written.

    ``names`` are those of the rows, and of everything else that they change in their owner's
    memory.
    """

    rows: tuple[Row, ...]
    undo: Undo | None
    names: frozenset[Hashable]
    done: asyncio.Future[None] = field(default_factory=lambda: _future())


class Writing:
    """A queue that writes changes in the order of their arrival; belongs to one event loop.

    Changes that arrive during a write are written together afterwards. If that fails, each set is
    tried alone. A refused set is undone together with every later set that shares a name with it,
    the latest first. So each ``undo`` finds memory as its set left it.
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
        """Queue changes; the ``done`` future of the result reports whether they were written."""
        changes = tuple(rows)
        names = frozenset({*about, *(row.name for row in changes)})
        added = Changes(changes, undo, names)
        self._queued.append(added)
        self._start()
        return added

    async def saved(self) -> None:
        """Return when everything that was added before is written; raise StateError if not."""
        self._start()
        waiting = [one.done for one in (*self._kept, *self._batch, *self._queued)]
        if waiting:
            await asyncio.wait(waiting)
        for one in waiting:
            one.result()

    async def settled(self, name: Hashable) -> None:
        """Return when no change of that name is pending, whether it succeeded or failed."""
        waiting = {one.done for one in (*self._batch, *self._queued) if name in one.names}
        if waiting:
            await asyncio.wait(waiting)

    async def close(self) -> None:
        """Try once more to write the rest; log what cannot be written."""
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
        """Write one set after another; refuse those that fail and those that depend on them."""
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
        """Undo the failed sets and later ones that depend on them; keep the rest."""
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
            one.done = _future()  # for callers that wait for the next try


def _accept(batch: Sequence[Changes]) -> None:
    for one in batch:
        one.done.set_result(None)


def _take_back(one: Changes) -> None:
    try:
        if one.undo is not None:
            one.undo()
    except Exception:  # the other sets must be undone and reported all the same
        _log.exception("What was refused could not be taken back: %s.", one.names)


def _future() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    # perhaps no caller waits and reads the exception
    future.add_done_callback(lambda one: one.cancelled() or one.exception())
    return future
