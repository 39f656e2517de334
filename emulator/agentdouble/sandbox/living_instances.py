"""The living session instances, found by id, by key, by tool and by deadline.

The cost of a call does not depend on the number of instances. Deadlines are in a heap. If a
deadline has moved to later, its entry is corrected when it reaches the top. If an instance may
live past its deadline, because it is busy or paused, it is deferred until that changes.
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
_LAPSED = 64  # the heap may have this many stale entries more than it has current ones


class LivingInstances:
    """The living instances, in the order in which they were made."""

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
        """Return the instance of a key, or None."""
        return self._by_key.get(key)

    def by_id(self, session_id: str) -> Instance | None:
        """Return the instance with that SessionId, or None."""
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
        """Handle that an instance's deadline has moved, or that it became idle or was resumed."""
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
            if self._next_deadlines.get(id_) != at:  # it was removed, or has another entry
                continue
            del self._next_deadlines[id_]
            instance = self._by_id[id_]
            if self._is_due(instance, now):
                found.append(instance)
        for instance in found:  # an instance that cannot be ended now is still due
            self._push(instance)
        return found

    def next_due_s(self, now: dt.datetime) -> float:
        """Return the seconds until the next instance may be due."""
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
        """Put instances back into the heap if the ledger no longer defers them."""
        for unknown, group in self._deferred.items():
            if group and ledger.choose(unknown) != self._deferring_answers[unknown]:
                for instance in [*group.values()]:
                    self.update(instance)

    def _push(self, instance: Instance) -> None:
        self._next_deadlines[instance.id] = instance.deadline
        heapq.heappush(self._heap, (instance.deadline, next(self._numbers), instance.id))
