"""Sessions that use more than they may, found by looking at them again and again.

Linux limits a process and a file, not a session; what limits sessions (cgroups, quotas) is
seldom ours to use. A session is ended when it is seen over its limit, so for a moment it can
be. Who had no processor time since it was counted has not grown: of an idle session nothing is
read but that, a microsecond a process. A session at which it takes long, for it has hundreds of
processes or a million files, is passed over for a while: no other may pay for that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentdouble.processes import usage
from agentdouble.processes.usage import Process, TooDeepError

INTERVAL_S = 0.25
_TURN = 4  # looks; after so many an idle session has its turn
_REST = 20  # what took long is followed by a pause of so many times that
_LONGEST_REST_S = 5.0  # but of no more: what grows meanwhile is not seen
_FEW = 8  # sessions, or one in 16: their trees are walked, for more the whole table is read
_UNKNOWN = -2  # the time of a process that was not known before it was counted

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1, "bytes"))


@dataclass(frozen=True)
class Watched:
    """A session: its name, its kernels' processes, the directories it writes to."""

    name: str
    pids: tuple[int, ...]
    directories: tuple[Path, ...]


class Watch:
    """Looks at sessions; ``memory`` and ``files`` are what each may use, in bytes.

    ``stirred()`` and ``look()`` block and run in one thread at a time; the others may be called
    meanwhile.
    """

    def __init__(self, *, memory: int, files: int) -> None:
        self._memory = memory
        self._files = files
        self.pause_s = INTERVAL_S
        self._looks = 0
        self._told: set[str] = set()
        self._counted: dict[str, dict[int, int]] = {}  # the times of each session's processes
        self._seen: dict[str, dict[int, int]] = {}  # those of the sessions that stirred
        self._rests: dict[str, int] = {}  # until which look
        self._in_turn: list[str] = []

    def stir(self, name: str) -> None:
        """Have a session counted at the next look: it is new, or has another process."""
        self._told.add(name)

    def forget(self, name: str) -> None:
        """Forget a session that has ended."""
        self._told.discard(name)
        for memory in (self._counted, self._seen, self._rests):
            memory.pop(name, None)

    def stirred(self) -> set[str]:
        """Return the sessions that may have grown since they were counted.

        One that may not is among them, each in its turn: what no process of its does, a file
        system on its own say, is seen then. Sets ``pause_s``, how long to wait until the next look.
        """
        began = time.perf_counter()
        self._looks += 1
        found = self._told.copy()
        for name, times in self._counted.copy().items():
            if not usage.are_idle(times):
                self._seen[name] = {pid: usage.busy_ns(pid) for pid in times}
                found.add(name)
        if self._looks % _TURN == 0:
            found |= self._next_in_turn()
        self.pause_s = _rest_s(time.perf_counter() - began)
        return {name for name in found if self._rests.get(name, 0) <= self._looks}

    def look(self, sessions: Collection[Watched]) -> Mapping[str, str]:
        """Return why sessions are to be ended, by name; blocks while it counts."""
        table = self._table(len(sessions))
        reasons = {one.name: self._look_at(one, table) for one in sessions}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _next_in_turn(self) -> set[str]:
        self._in_turn = self._in_turn or [*self._counted]
        return {self._in_turn.pop()} if self._in_turn else set()

    def _table(self, sessions: int) -> Mapping[int, Process] | None:
        """Return every process of this machine where that is cheaper than to walk trees."""
        if usage.CAN_WALK and sessions <= max(_FEW, len(self._counted) // 16):
            return None
        began = time.perf_counter()
        table = usage.processes()
        self.pause_s = max(self.pause_s, _rest_s(time.perf_counter() - began))
        return table

    def _look_at(self, session: Watched, table: Mapping[int, Process] | None) -> str | None:
        began = time.perf_counter()
        self._told.discard(session.name)
        before = self._seen.pop(session.name, None) or self._counted.get(session.name, {})
        tree = usage.walk(session.pids) if table is None else usage.tree(session.pids, table)
        # Times of before the tree was read: what has happened since is seen at the next look.
        self._counted[session.name] = {one.pid: before.get(one.pid, _UNKNOWN) for one in tree}
        reason = self._reason(session, tree)
        looks = _rest_s(time.perf_counter() - began) / INTERVAL_S
        self._rests[session.name] = self._looks + int(looks)
        return reason

    def _reason(self, session: Watched, tree: list[Process]) -> str | None:
        if usage.memory(tree, self._memory) > self._memory:
            return f"killed: its memory grew over {_size(self._memory)}"
        try:
            room = usage.files(map(str, session.directories), tree, self._files)
        except TooDeepError:
            return "killed: its directories are deeper than their files can be counted"
        if room > self._files:
            return f"killed: its files grew over {_size(self._files)}"
        return None


def _rest_s(took_s: float) -> float:
    return min(_LONGEST_REST_S, max(INTERVAL_S, _REST * took_s))


def _size(count: int) -> str:
    unit, name = next((u, n) for u, n in _UNITS if count % u == 0)
    return f"{count // unit} {name}"
