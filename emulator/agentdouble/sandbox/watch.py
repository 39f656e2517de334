"""Sessions that use more than they may, found by looking at them again and again.

Linux limits a process and a file, not a session; what limits sessions (cgroups, quotas) is
seldom ours to use. A session is ended when it is seen over its limit, so for a moment it can
be. One look at 64 idle sessions takes some 5 ms. A session at which it takes long, for it has
hundreds of processes or a million files, is passed over for a while: no other may pay for that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentdouble.processes import usage
from agentdouble.processes.usage import Process, TooDeepError

INTERVAL_S = 0.25
_REST = 20  # what took long is followed by a pause of so many times that
_LONGEST_REST_S = 5.0  # but of no more: what grows meanwhile is not seen
_ALL_THE_SAME = 40  # how many looks until the files of a session that did nothing are counted

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1, "bytes"))


@dataclass(frozen=True)
class Watched:
    """A session: its name, its kernels' processes, the directories it writes to."""

    name: str
    pids: tuple[int, ...]
    directories: tuple[Path, ...]


class Watch:
    """Looks at sessions; ``memory`` and ``files`` are what each may use, in bytes."""

    def __init__(self, *, memory: int, files: int) -> None:
        self._memory = memory
        self._files = files
        self.pause_s = INTERVAL_S
        self._looks = 0
        self._seen: dict[str, tuple[tuple[int, float], ...]] = {}
        self._rests: dict[str, int] = {}  # until which look

    def look(self, sessions: Iterable[Watched]) -> Mapping[str, str]:
        """Return why sessions are to be ended, by name; blocks while it counts.

        Sets ``pause_s``, how long to wait until the next look.
        """
        began = time.perf_counter()
        self._looks += 1
        table = usage.processes()
        self.pause_s = _rest_s(time.perf_counter() - began)
        named = {one.name: one for one in sessions}
        for memory in (self._seen, self._rests):
            for name in memory.keys() - named.keys():
                del memory[name]
        reasons = {name: self._look_at(one, table) for name, one in named.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _look_at(self, session: Watched, table: Mapping[int, Process]) -> str | None:
        if self._rests.get(session.name, 0) > self._looks:
            return None
        began = time.perf_counter()
        tree = usage.tree(session.pids, table)
        reason = self._reason(session, tree)
        self._seen[session.name] = _activity(tree)
        looks = _rest_s(time.perf_counter() - began) / INTERVAL_S
        self._rests[session.name] = self._looks + int(looks)
        return reason

    def _reason(self, session: Watched, tree: list[Process]) -> str | None:
        if usage.memory(tree, self._memory) > self._memory:
            return f"killed: its memory grew over {_size(self._memory)}"
        same = self._seen.get(session.name) == _activity(tree)
        if same and self._looks % _ALL_THE_SAME:
            return None
        try:
            room = usage.files(map(str, session.directories), tree, self._files)
        except TooDeepError:
            return "killed: its directories are deeper than their files can be counted"
        if room > self._files:
            return f"killed: its files grew over {_size(self._files)}"
        return None


def _rest_s(took_s: float) -> float:
    return min(_LONGEST_REST_S, max(INTERVAL_S, _REST * took_s))


def _activity(tree: list[Process]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted((process.pid, process.busy_s) for process in tree))


def _size(count: int) -> str:
    unit, name = next((u, n) for u, n in _UNITS if count % u == 0)
    return f"{count // unit} {name}"
