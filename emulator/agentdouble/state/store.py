"""A store of records: in memory, or in a database that outlives the process.

The owner of records keeps them in memory and reads them there, except large ones. It writes a
change to the store first, and then makes it in memory. So whatever a client was told is kept, and
a change that cannot be kept is never seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A record that replaces the record with its kind and id; None removes that record."""

    kind: str
    id: str
    record: Record | None = None


class Store:
    """Records by kind and id, in memory; each is a JSON object. Subclasses keep them."""

    outlives = False  # whether the records outlive the process

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Record]] = {}

    async def open(self) -> None:
        """Make the store ready; raise StateError if it cannot be used. Later calls do nothing."""

    async def wait(self, report: Callable[[str], None]) -> None:
        """Open the store as soon as no other double has it; ``report`` gets what it waits for."""
        await self.open()

    async def replaced(self) -> str:
        """Wait until another double has the store in our place; return how that was noticed."""
        await asyncio.Event().wait()
        return ""

    async def load(self, kind: str) -> Mapping[str, Record]:
        """Return all records of a kind by id."""
        return dict(self._records.get(kind, {}))

    async def read(self, kind: str, id_: str) -> Record | None:
        """Return one record as it was last put, or None."""
        return self._records.get(kind, {}).get(id_)

    async def write(self, *changes: Change) -> None:
        """Keep all changes or none; raise StateError if they cannot be kept."""
        for change in changes:
            self.put(change)

    def put(self, change: Change) -> None:
        """Queue a change that cannot be refused; the write is repeated until it succeeds."""
        records = self._records.setdefault(change.kind, {})
        if change.record is None:
            records.pop(change.id, None)
        else:
            records[change.id] = change.record

    async def saved(self) -> None:
        """Return when everything that was queued is kept; raise StateError if it cannot."""

    async def check(self) -> None:
        """Raise StateError, without long waiting, if the store cannot keep anything now."""

    async def close(self) -> None:
        """Keep what is queued and release the store; log what cannot be kept."""
        self._records.clear()


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end, even if the caller is cancelled meanwhile."""
    return await asyncio.shield(asyncio.ensure_future(work))
