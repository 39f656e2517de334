"""The memory and processor time of instances, as seen in their process trees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from agentdouble.processes import usage

_REST = 20  # what took long is followed by a pause of so many times that


@dataclass(frozen=True)
class Used:
    """What an instance uses: resident memory (bytes), processes, processor time (seconds).

    ``cpu_s`` is of the processes that live, ``spent_s`` what was added since the last look.
    """

    memory: int = 0
    processes: int = 0
    cpu_s: float = 0.0
    spent_s: float = 0.0


@dataclass(frozen=True)
class Tree:
    """An instance's first process, and the memory that its processes may have, if limited.

    ``without`` is a process below it that is the double's own.
    """

    pid: int
    memory_limit: int | None = None
    without: int | None = None


class Sampler:
    """Looks at process trees again and again."""

    def __init__(self) -> None:
        self._took_s = 0.0
        self._busy: dict[Tree, dict[int, float]] = {}

    def look(self, trees: Mapping[str, Tree]) -> Mapping[str, Used]:
        """Return what each instance uses, by name; blocks while it reads."""
        began = time.perf_counter()
        table = usage.processes() if trees else {}
        for tree in self._busy.keys() - {*trees.values()}:
            del self._busy[tree]
        used = {name: self._look_at(tree, table) for name, tree in trees.items()}
        self._took_s = time.perf_counter() - began
        return used

    def rest_s(self, interval_s: float) -> float:
        """Return how long to wait until the next look, so that looking costs little."""
        return max(interval_s, _REST * self._took_s)

    def _look_at(self, tree: Tree, table: Mapping[int, usage.Process]) -> Used:
        found = [one for one in usage.tree((tree.pid,), table) if one.pid != tree.without]
        before = self._busy.get(tree, {})
        busy = self._busy[tree] = {process.pid: process.busy_s for process in found}
        spent_s = sum(now_s - _earlier(before, pid, now_s) for pid, now_s in busy.items())
        return Used(_memory(found, tree.memory_limit), len(found), sum(busy.values()), spent_s)


def _earlier(before: Mapping[int, float], pid: int, now_s: float) -> float:
    """Return the time that a process had at the last look; a smaller one now is another's."""
    earlier_s = before.get(pid, 0.0)
    return earlier_s if earlier_s <= now_s else 0.0


def _memory(processes: list[usage.Process], limit: int | None) -> int:
    if limit is not None:
        return usage.memory(processes, limit)
    return sum(process.resident for process in processes)
