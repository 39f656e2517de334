"""The living session instances: found by id, by key and by tool, and by which are due.

What a call costs here does not depend on how many there are. Deadlines stand in a heap; one
that has moved to later is put right when it is its turn. An instance whose deadline has come
but which is not due yet, for it is busy or paused, stands aside until that changes.
"""

from __future__ import annotations

import datetime as dt
import heapq
import itertools
import math

from agentdouble import ledger
from agentdouble.sandbox.instance import Instance, InstanceKey

_Entry = tuple[dt.datetime, int, str]
_LAPSED = 64  # so many entries of the heap may be of no use, and as many as there are of use


class Living:
    """Holds instances in the order in which they were made."""

    def __init__(self) -> None:
        self._by_key: dict[InstanceKey, Instance] = {}
        self._by_id: dict[str, Instance] = {}
        self._by_tool: dict[str, dict[str, Instance]] = {}
        self._heap: list[_Entry] = []
        self._ahead: dict[str, dt.datetime] = {}  # by id, the first entry of each in the heap
        self._aside: dict[str, dict[str, Instance]] = {"U-TTL-PAUSED": {}, "U-TTL-DURING": {}}
        self._put_aside_under = {"U-TTL-PAUSED": "stops", "U-TTL-DURING": "finishes"}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> tuple[Instance, ...]:
        """Return every instance, oldest first."""
        return tuple(self._by_key.values())

    def of_tool(self, tool_id: str) -> tuple[Instance, ...]:
        """Return the instances of a tool, oldest first."""
        return tuple(self._by_tool.get(tool_id, {}).values())

    def get(self, key: InstanceKey) -> Instance | None:
        """Return the instance of a key, if there is one."""
        return self._by_key.get(key)

    def by_id(self, session_id: str) -> Instance | None:
        """Return the instance with that SessionId, if there is one."""
        return self._by_id.get(session_id)

    def add(self, instance: Instance) -> None:
        """Take up an instance; its key must be free."""
        self._by_key[instance.key] = instance
        self._by_id[instance.id] = instance
        self._by_tool.setdefault(instance.key.tool_id, {})[instance.id] = instance
        self.reconsider(instance)

    def remove(self, instance: Instance) -> bool:
        """Let go of an instance; return whether it was there."""
        if self._by_id.pop(instance.id, None) is None:
            return False
        del self._by_key[instance.key]
        theirs = self._by_tool[instance.key.tool_id]
        del theirs[instance.id]
        if not theirs:
            del self._by_tool[instance.key.tool_id]
        self._ahead.pop(instance.id, None)
        for group in self._aside.values():
            group.pop(instance.id, None)
        return True

    def reconsider(self, instance: Instance) -> None:
        """Note that an instance's deadline has moved, or that it is idle or resumed."""
        if instance.id not in self._by_id:
            return
        aside = [group.pop(instance.id, None) for group in self._aside.values()]
        ahead = self._ahead.get(instance.id)
        if ahead is None or instance.deadline < ahead or any(aside):
            self._push(instance)

    def due(self, now: dt.datetime) -> list[Instance]:
        """Return those whose deadline has come (SBX-03, U-TTL-DURING, U-TTL-PAUSED)."""
        self._recall()
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, _, id_ = heapq.heappop(self._heap)
            if self._ahead.get(id_) != at:  # it has gone, or stands elsewhere
                continue
            del self._ahead[id_]
            instance = self._by_id[id_]
            if self._is_due(instance, now):
                found.append(instance)
        for instance in found:  # if it cannot be ended now, it is due still
            self._push(instance)
        return found

    def next_due_s(self, now: dt.datetime) -> float:
        """Return in how many seconds one may be due, at the soonest."""
        return (self._heap[0][0] - now).total_seconds() if self._heap else math.inf

    def tidy(self) -> None:
        """Make the heap anew when more than half of it is of instances that have gone."""
        if len(self._heap) > 2 * len(self._ahead) + _LAPSED:
            self._heap = [(at, number, id_) for number, (id_, at) in enumerate(self._ahead.items())]
            heapq.heapify(self._heap)

    def _is_due(self, instance: Instance, now: dt.datetime) -> bool:
        if instance.deadline > now:  # it has moved to later
            self._push(instance)
            return False
        reason = instance.put_off()
        if reason is not None:
            self._aside[reason][instance.id] = instance
        return reason is None

    def _recall(self) -> None:
        """Take back what was put aside under another answer of the ledger than today's."""
        for unknown, group in self._aside.items():
            if group and ledger.choose(unknown) != self._put_aside_under[unknown]:
                for instance in [*group.values()]:
                    self.reconsider(instance)

    def _push(self, instance: Instance) -> None:
        self._ahead[instance.id] = instance.deadline
        heapq.heappush(self._heap, (instance.deadline, next(self._numbers), instance.id))
