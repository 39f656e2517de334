"""Finds the sessions that use more memory or disk than allowed, by polling.

Linux limits a process or a file, but not a session. Cgroups, quotas and file systems of a fixed
size need rights or tools that most machines do not give, and would hide files from the double. So
a thread measures the sessions four times a second, and a session over its limit is ended. For a
moment a session can exceed its limit.

If the processes of a session had no processor time since the last look, the session has not grown,
and nothing else is read. This takes a microsecond per process. A single process that is idle is
read once a second, until its session is used: Linux limits its memory, and each of its files. A
session that takes long to measure, with hundreds of processes or a million files, is left out for a
while, so that it does not slow down the others.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentdouble.processes import usage
from agentdouble.processes.usage import Process, TooDeepError

INTERVAL_S = 0.25
_TURN = 4  # once in so many looks, an idle session is measured, and all single processes are read
_REST = 20  # the pause after a look is this many times as long as the look
_LONGEST_REST_S = 5.0  # growth during a longer pause would be found too late
_UNKNOWN = -2  # the time of a process that the last look did not know

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1, "bytes"))


@dataclass(frozen=True)
class WatchedSession:
    """A session: its name, its processes, and the directories that it writes to."""

    name: str
    pids: tuple[int, ...]
    directories: tuple[Path, ...]


@dataclass(frozen=True)
class Used:
    """What a session's processes use: memory in bytes, and processor time in seconds."""

    memory: int
    cpu_s: float


class Watch:
    """Measures the memory and files of sessions; each may use ``memory`` and ``files`` bytes.

    ``active_sessions()`` and ``check()`` block, and run in one thread at a time. The other methods
    may be called at the same time.
    """

    def __init__(self, *, memory: int, files: int) -> None:
        self._memory = memory
        self._files = files
        self.pause_s = INTERVAL_S
        self._looks = 0
        self._told: set[str] = set()
        self._counted: dict[str, dict[int, int]] = {}  # the times of each session's processes
        self._quiet: set[str] = set()  # whose single process is idle, and not read for some looks
        self._used: dict[str, Used] = {}
        self._rests: dict[str, int] = {}  # the number of the look until which a session is left out
        self._in_turn: list[str] = []

    def mark_active(self, name: str) -> None:
        """Measure a session at the next look, because it is new, idle or has a new process."""
        self._told.add(name)

    def forget(self, name: str) -> None:
        """Forget a session that has ended."""
        self._told.discard(name)
        for memory in (self._counted, self._used, self._rests):
            memory.pop(name, None)

    def used_by(self, name: str) -> Used | None:
        """Return what a session used when it was measured, or None before that."""
        return self._used.get(name)

    def active_sessions(self) -> set[str]:
        """Return the sessions that may have grown since they were measured.

        At every fourth look, add the next idle session, because its files can grow without a
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
            elif len(times) == 1:
                self._quiet.add(name)
        self.pause_s = _rest_s(time.perf_counter() - began)
        return {name for name in active if self._rests.get(name, 0) <= self._looks}

    def check(self, sessions: Collection[WatchedSession]) -> Mapping[str, str]:
        """Measure sessions; return by name the reasons why some of them must be ended."""
        reasons = {session.name: self._look_at(session) for session in sessions}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _next_in_turn(self) -> set[str]:
        self._in_turn = self._in_turn or [*self._counted]
        return {self._in_turn.pop()} if self._in_turn else set()

    def _look_at(self, session: WatchedSession) -> str | None:
        began = time.perf_counter()
        self._told.discard(session.name)
        self._quiet.discard(session.name)
        known = {*session.pids, *self._counted.get(session.name, ())}
        times = {pid: usage.busy_ns(pid) for pid in known}
        # These times are from before the tree is read, so the next look sees all changes since.
        tree = usage.walk(session.pids)
        self._counted[session.name] = {p.pid: times.get(p.pid, _UNKNOWN) for p in tree}
        reason = self._reason(session, tree)
        looks = _rest_s(time.perf_counter() - began) / INTERVAL_S
        self._rests[session.name] = self._looks + int(looks)
        return reason

    def _reason(self, session: WatchedSession, tree: list[Process]) -> str | None:
        memory = usage.memory(tree, self._memory)
        self._used[session.name] = Used(memory, sum(process.busy_s for process in tree))
        if memory > self._memory:
            return f"killed: its memory grew over {_size(self._memory)}"
        try:
            size = usage.files(map(str, session.directories), tree, self._files)
        except TooDeepError:
            return "killed: its directories are nested too deeply to count their files"
        if size > self._files:
            return f"killed: its files grew over {_size(self._files)}"
        return None


def _rest_s(took_s: float) -> float:
    return min(_LONGEST_REST_S, max(INTERVAL_S, _REST * took_s))


def _size(count: int) -> str:
    unit, name = next((u, n) for u, n in _UNITS if count % u == 0)
    return f"{count // unit} {name}"
