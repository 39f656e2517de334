"""Changes that are written together or not at all, and how memory is restored if they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Record = Mapping[str, Any]
Undo = Callable[[], None]


@dataclass(frozen=True)
class Change:
    """A record that replaces the record with its kind and id; None removes that record."""

    kind: str
    id: str
    record: Record | None = None


def restoring(mapping: dict[K, V], *keys: K) -> Undo:
    """Return a function that restores the current values and order of these keys in a mapping."""
    before = {key: mapping[key] for key in keys if key in mapping}
    order = list(mapping)

    def undo() -> None:
        now = {key: value for key, value in mapping.items() if key not in keys} | before
        mapping.clear()
        mapping.update({key: now.pop(key) for key in order if key in now})
        mapping.update(now)

    return undo


async def unbroken(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Run work to its end, even if the caller is cancelled meanwhile."""
    return await asyncio.shield(asyncio.ensure_future(work))
