"""The living session instances: found by id, by key and by tool, and by deadline.

The cost of a call does not depend on how many there are. Deadlines are in a heap; a deadline that
has moved to later is corrected when it comes up. An instance whose deadline has come but which may
live on, because it is busy or paused, is deferred until that changes.
"""

from __future__ import annotations

import datetime as dt
import heapq
import itertools
import math

from agentdouble import ledger
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.session import InstanceKey

_Entry = tuple[dt.datetime, int, str]
_LAPSED = 64  # so many entries of the heap may be stale, besides as many as are current


class LivingInstances:
    """Holds instances in the order in which they were made."""

    def __init__(self) -> None:
        self._by_key: dict[InstanceKey, Instance] = {}
        self._by_id: dict[str, Instance] = {}
        self._by_tool: dict[str, dict[str, Instance]] = {}
        self._heap: list[_Entry] = []
        self._next_deadlines: dict[
            str, dt.datetime
        ] = {}  # by id, the first entry of each in the heap
        self._deferred: dict[str, dict[str, Instance]] = {"U-TTL-PAUSED": {}, "U-TTL-DURING": {}}
        self._deferring_answers = {"U-TTL-PAUSED": "stops", "U-TTL-DURING": "finishes"}
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
        """Add an instance; its key must be free."""
        self._by_key[instance.key] = instance
        self._by_id[instance.id] = instance
        self._by_tool.setdefault(instance.key.tool_id, {})[instance.id] = instance
        self.update(instance)

    def remove(self, instance: Instance) -> bool:
        """Remove an instance; return whether it was there."""
        if self._by_id.pop(instance.id, None) is None:
            return False
        del self._by_key[instance.key]
        theirs = self._by_tool[instance.key.tool_id]
        del theirs[instance.id]
        if not theirs:
            del self._by_tool[instance.key.tool_id]
        self._next_deadlines.pop(instance.id, None)
        for group in self._deferred.values():
            group.pop(instance.id, None)
        return True

    def update(self, instance: Instance) -> None:
        """Note that an instance's deadline has moved, or that it is idle or resumed."""
        if instance.id not in self._by_id:
            return
        aside = [group.pop(instance.id, None) for group in self._deferred.values()]
        ahead = self._next_deadlines.get(instance.id)
        if ahead is None or instance.deadline < ahead or any(aside):
            self._push(instance)

    def due(self, now: dt.datetime) -> list[Instance]:
        """Return the instances whose deadline has come (SBX-03, U-TTL-DURING, U-TTL-PAUSED)."""
        self._recall_deferred()
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, _, id_ = heapq.heappop(self._heap)
            if self._next_deadlines.get(id_) != at:  # it has gone, or stands elsewhere
                continue
            del self._next_deadlines[id_]
            instance = self._by_id[id_]
            if self._is_due(instance, now):
                found.append(instance)
        for instance in found:  # if it cannot be ended now, it is due still
            self._push(instance)
        return found

    def next_due_s(self, now: dt.datetime) -> float:
        """Return in how many seconds the next instance may be due."""
        return (self._heap[0][0] - now).total_seconds() if self._heap else math.inf

    def compact(self) -> None:
        """Rebuild the heap when more than half of it is stale."""
        if len(self._heap) > 2 * len(self._next_deadlines) + _LAPSED:
            self._heap = [
                (at, number, id_) for number, (id_, at) in enumerate(self._next_deadlines.items())
            ]
            heapq.heapify(self._heap)

    def _is_due(self, instance: Instance, now: dt.datetime) -> bool:
        if instance.deadline > now:  # it has moved to later
            self._push(instance)
            return False
        reason = instance.deferred_by()
        if reason is not None:
            self._deferred[reason][instance.id] = instance
        return reason is None

    def _recall_deferred(self) -> None:
        """Reconsider what was deferred under another answer of the ledger."""
        for unknown, group in self._deferred.items():
            if group and ledger.choose(unknown) != self._deferring_answers[unknown]:
                for instance in [*group.values()]:
                    self.update(instance)

    def _push(self, instance: Instance) -> None:
        self._next_deadlines[instance.id] = instance.deadline
        heapq.heappush(self._heap, (instance.deadline, next(self._numbers), instance.id))
