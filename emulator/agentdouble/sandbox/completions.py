"""Completions of code by a kernel.

Python kernels complete without jedi, which reads all of Python's stubs before its first answer
(5 s). IPython looks at the living objects instead, which is fast unless it calls slow code of the
session, for example a ``__dir__``. Such code is interrupted after a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentdouble.sandbox.kernel import Kernel

PATIENCE_S = 1.0


@dataclass(frozen=True)
class KernelCompletion:
    """The matches that can replace the code from character ``start`` to ``end``."""

    matches: tuple[str, ...]
    start: int
    end: int


async def complete(kernel: Kernel, code: str, position: int) -> KernelCompletion:
    """Complete code with an idle kernel; return no matches if it takes more than a second."""
    content = {"code": code, "cursor_pos": position}
    answer = await kernel.ask("complete_request", content, PATIENCE_S)
    return no_completion(position) if answer is None else _completion(answer, position)


def no_completion(position: int) -> KernelCompletion:
    """Return a completion without matches."""
    return KernelCompletion((), position, position)


def _completion(answer: Mapping[str, Any], position: int) -> KernelCompletion:
    """Read an answer; return no matches if it is malformed, which the session's code can cause."""
    matches, start, end = (answer.get(n) for n in ("matches", "cursor_start", "cursor_end"))
    if not (isinstance(matches, list) and matches and type(start) is type(end) is int):
        return no_completion(position)
    if not 0 <= start <= position <= end:
        return no_completion(position)
    return KernelCompletion(tuple(map(str, matches)), start, end)
