"""Changes that are written together or not at all, and how memory follows when they are not."""

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
    """A record that takes the place of the one with its kind and id; None removes that one."""

    kind: str
    id: str
    record: Record | None = None


def restoring(mapping: dict[K, V], *keys: K) -> Undo:
    """Return what gives these keys of a mapping the values, and the places, they have now."""
    before = {key: mapping[key] for key in keys if key in mapping}
    order = list(mapping)

    def undo() -> None:
        now = {key: value for key, value in mapping.items() if key not in keys} | before
        mapping.clear()
        mapping.update({key: now.pop(key) for key in order if key in now})
        mapping.update(now)

    return undo


async def unbroken(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Do something to its end, also if who asked for it goes away meanwhile."""
    return await asyncio.shield(asyncio.ensure_future(work))
