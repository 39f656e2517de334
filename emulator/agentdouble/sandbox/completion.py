"""What could stand at a place in code, as a kernel says it: what the tab key offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentdouble.sandbox.kernel import Kernel

PATIENCE_S = 1.0


@dataclass(frozen=True)
class Completion:
    """What could stand in code from ``start`` to ``end``, which count its characters."""

    matches: tuple[str, ...]
    start: int
    end: int


async def complete(kernel: Kernel, code: str, place: int) -> Completion:
    """Ask a kernel that runs nothing; there are no matches if it does not say within a second."""
    question = {"code": code, "cursor_pos": place}
    answer = await kernel.ask("complete_request", question, PATIENCE_S)
    return nothing(place) if answer is None else _read(answer, place)


def nothing(place: int) -> Completion:
    """Return that nothing is known to stand there."""
    return Completion((), place, place)


def _read(answer: Mapping[str, Any], place: int) -> Completion:
    """Return what an answer says, nothing where it makes no sense: the session's code may give it."""
    matches, start, end = (answer.get(n) for n in ("matches", "cursor_start", "cursor_end"))
    if not (isinstance(matches, list) and matches and type(start) is type(end) is int):
        return nothing(place)
    if not 0 <= start <= place <= end:
        return nothing(place)
    return Completion(tuple(map(str, matches)), start, end)
