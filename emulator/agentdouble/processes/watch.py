"""Measures sessions and instances, and finds those that use more memory or disk than allowed.

Linux limits a process or a file, but not a group of processes. Cgroups, quotas and file systems of
a fixed size need rights or tools that most machines do not give, and would hide files from the
double. A limit of the address space would refuse memory that programs merely reserve (threads,
engines with a heap of their own), and would apply to each child separately. So a thread measures
each group four times a second, and a group over its limit is ended. For a moment it can exceed its
limit.

If the processes of a group had no processor time since the last look, the group has not grown, and
nothing else is read. This takes a microsecond per process. With 490 idle sessions, reading these
times still took 0.8 % of a core, half of it for cache misses. So a single idle process whose memory
and files Linux limits is read once a second, until its group is used.

A group that takes long to measure, with hundreds of processes or a million files, is left out for a
while, so that it does not slow down the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentdouble.processes import usage
from agentdouble.processes.usage import Process, TooDeepError

INTERVAL_S = 0.25
_TURN = 4  # once in so many looks, an idle group is measured, and all single processes are read
_REST = 20  # the pause after a look is this many times as long as the look
_LONGEST_REST_S = 5.0  # growth during a longer pause would be found too late
_UNKNOWN = -2  # the time of a process that the last look did not know

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1, "bytes"))


@dataclass(frozen=True)
class Watched:
    """A group of processes, with everything that they start: a session, or an instance.

    The limits are in bytes, and None limits nothing. ``file_limit`` is for what is in
    ``directories`` and for removed files that are still open. ``capped`` says whether Linux limits
    the memory and the files of each process.
    """

    name: str
    pids: tuple[int, ...]
    memory_limit: int | None
    directories: tuple[Path, ...] = ()
    file_limit: int | None = None
    capped: bool = False


@dataclass(frozen=True)
class Used:
    """What a group uses: resident memory (bytes), processor time (seconds), processes."""

    memory: int = 0
    cpu_s: float = 0.0
    processes: int = 0


class Watch:
    """Measures groups of processes, and finds those over a limit.

    ``active()`` and ``check()`` block, and run in one thread at a time. The other methods may be
    called at the same time.
    """

    def __init__(self) -> None:
        self.pause_s = INTERVAL_S
        self._looks = 0
        self._told: set[str] = set()
        self._counted: dict[str, dict[int, int]] = {}  # the times of each group's processes
        self._capped: set[str] = set()
        # groups whose single process is idle and is skipped for some looks
        self._quiet: set[str] = set()
        self._used: dict[str, Used] = {}
        self._rests: dict[str, int] = {}  # the number of the look until which a group is left out
        self._in_turn: list[str] = []

    def mark_active(self, name: str) -> None:
        """Measure a group at the next look, because it is new, used or has a new process."""
        self._told.add(name)

    def forget(self, name: str) -> None:
        """Forget a group that has ended."""
        self._told.discard(name)
        self._capped.discard(name)
        for memory in (self._counted, self._used, self._rests):
            memory.pop(name, None)

    def used_by(self, name: str) -> Used | None:
        """Return what a group used when it was measured, or None before that."""
        return self._used.get(name)

    def active(self) -> set[str]:
        """Return the groups that may have grown since they were measured.

        At every fourth look, add the next idle group, because its files can grow without a
        process of its own. Set ``pause_s``, the time to wait until the next look.
        """
        began = time.perf_counter()
        self._looks += 1
        active = self._told.copy()
        if self._looks % _TURN == 0:
            active |= self._next_in_turn()
            self._quiet.clear()
        for name, times in self._counted.copy().items():
            if name in self._quiet:
                continue
            if not usage.are_idle(times):
                active.add(name)
            elif len(times) == 1 and name in self._capped:
                self._quiet.add(name)
        self.pause_s = _rest_s(time.perf_counter() - began)
        return {name for name in active if self._rests.get(name, 0) <= self._looks}

    def check(self, groups: Collection[Watched]) -> Mapping[str, str]:
        """Measure groups; return by name the reasons why some of them must be ended."""
        reasons = {group.name: self._look_at(group) for group in groups}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _next_in_turn(self) -> set[str]:
        self._in_turn = self._in_turn or [*self._counted]
        return {self._in_turn.pop()} if self._in_turn else set()

    def _look_at(self, group: Watched) -> str | None:
        began = time.perf_counter()
        self._told.discard(group.name)
        self._quiet.discard(group.name)
        if group.capped:
            self._capped.add(group.name)
        known = {*group.pids, *self._counted.get(group.name, ())}
        times = {pid: usage.busy_ns(pid) for pid in known}
        # These times are from before the tree is read, so the next look sees all changes since.
        tree = usage.walk(group.pids)
        self._counted[group.name] = {p.pid: times.get(p.pid, _UNKNOWN) for p in tree}
        reason = self._reason(group, tree)
        looks = _rest_s(time.perf_counter() - began) / INTERVAL_S
        self._rests[group.name] = self._looks + int(looks)
        return reason

    def _reason(self, group: Watched, tree: list[Process]) -> str | None:
        limit = sys.maxsize if group.memory_limit is None else group.memory_limit
        memory = usage.memory(tree, limit)
        busy_s = sum(process.busy_s for process in tree)
        self._used[group.name] = Used(memory, busy_s, len(tree))
        if memory > limit:
            return f"killed: its memory grew over {_size(limit)}"
        if group.file_limit is None:
            return None
        try:
            size = usage.files(map(str, group.directories), tree, group.file_limit)
        except TooDeepError:
            return "killed: its directories are nested too deeply to count their files"
        if size > group.file_limit:
            return f"killed: its files grew over {_size(group.file_limit)}"
        return None


def _rest_s(took_s: float) -> float:
    return min(_LONGEST_REST_S, max(INTERVAL_S, _REST * took_s))


def _size(count: int) -> str:
    unit, name = next((u, n) for u, n in _UNITS if count % u == 0)
    return f"{count // unit} {name}"
