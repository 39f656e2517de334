"""The plan of faults: which are armed, for which calls, and how often each has happened."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.core.event_bus import EventBus
from agentdouble.errors import FaultError
from agentdouble.faults.kinds import LONGEST_S, Fault
from agentdouble.faults.operations import FaultableCall, FaultOperation
from agentdouble.faults.parsing import parse
from agentdouble.journal.entries import note_fault, note_step

MOST = 100
_MOST_SEEN = 200


@dataclass(frozen=True)
class FaultState:
    """The state of a fault.

    ``calls`` is the number of calls of its operation, ``met`` the number of calls that it was meant
    for, and ``fired`` the number of times it happened.
    """

    id: str
    fault: Fault
    calls: int
    met: int
    fired: int

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-ready data."""
        counts = {"calls": self.calls, "met": self.met, "fired": self.fired}
        fields = self.fault.model_dump(mode="json")
        return {"id": self.id, **fields, "described": self.fault.described(), **counts}


class PlannedFault:
    """One armed fault; it uses the lock of its plan."""

    def __init__(
        self,
        id_: str,
        fault: Fault,
        operation: FaultOperation,
        lock: threading.RLock,
        events: EventBus,
    ) -> None:
        self.id = id_
        self.fault = fault
        self.operation = operation
        self._lock = lock
        self._events = events
        self._calls = self._met = self._fired = 0
        # Tests wait in their own thread for events in the server's thread.
        self._happened = threading.Condition(lock)
        self._held_calls: set[_HeldCall] = set()
        self._is_disarmed = False

    def is_for(self, call: FaultableCall) -> bool:
        """Count a call and return whether the fault is for it; the plan holds the lock."""
        if not self.operation.matches(call):
            return False
        self._calls += 1
        times = self.fault.times
        if not self.fault.is_for(self._calls) or (times != "all" and self._met >= times):
            return False
        self._met += 1
        return True

    def happened(self) -> None:
        """Count that the fault happened to the current call, and note it in the journal."""
        note_fault(f"{self.id} {self.fault.kind}")
        with self._lock:
            self._fired += 1
            self._happened.notify_all()
        self.publish("fired")

    def wait(self, fired: int, timeout_s: float) -> bool:
        """Block until the fault has happened ``fired`` times; return False after the timeout."""
        # A fault that is disarmed never fires again, so the wait ends with it.
        with self._lock:
            return self._happened.wait_for(
                lambda: self._fired >= fired or self._is_disarmed, timeout_s
            ) and (self._fired >= fired)

    async def pause(self, seconds: float | None) -> bool:
        """Wait; return whether the whole time passed without a release of the call."""
        hold = _HeldCall()
        with self._lock:
            # ``matching`` found the fault before; since then another thread may have disarmed it,
            # and its ``release`` would not see this call.
            if self._is_disarmed:
                return False
            self._held_calls.add(hold)
        try:
            with note_step("fault"):
                await asyncio.wait_for(hold.released.wait(), seconds or LONGEST_S)
        except asyncio.TimeoutError:
            return True
        finally:
            with self._lock:
                self._held_calls.discard(hold)
        return False

    def release(self, *, disarm: bool) -> None:
        """Release the calls that the fault holds; with ``disarm`` hold no later calls either."""
        with self._lock:
            # Released outside of the lock: the calls run on another thread's loop and take it.
            holds = tuple(self._held_calls)
            self._is_disarmed = self._is_disarmed or disarm
            self._happened.notify_all()
        for hold in holds:
            hold.release()
        self.publish("removed" if disarm else "released")

    def publish(self, happened: str) -> None:
        """Publish what happened; not called with the lock, because listeners are shown the state."""
        if self._events.watched:
            self._events.publish("fault", self.id, happened, lambda: self.state().to_dict())

    def state(self) -> FaultState:
        """Return the state of the fault."""
        with self._lock:
            return FaultState(self.id, self.fault, self._calls, self._met, self._fired)


class _HeldCall:
    """A call that waits on the server's loop; any thread may release it."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def release(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits there
            self._loop.call_soon_threadsafe(self.released.set)


class Faults:
    """The faults of one double; may be used from any thread.

    ``actions`` are the names of the control plane's actions. ``at_start`` are armed at the start,
    and again when the double is reset. Raises FaultError for a wrong fault.
    """

    def __init__(
        self,
        actions: Iterable[str],
        at_start: Sequence[Mapping[str, Any]] = (),
        events: EventBus | None = None,
    ) -> None:
        self._events = events or EventBus()
        self._actions = tuple(actions)
        self._at_start = tuple(parse(document, self._actions) for document in at_start)
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._armed: tuple[PlannedFault, ...] = ()
        self._seen: dict[str, int] = {}
        self.reset()

    @property
    def active(self) -> bool:
        """Whether any fault is armed."""
        return bool(self._armed)

    @property
    def reads_bodies(self) -> bool:
        """Whether a request's body says which faults are for it."""
        return any(armed.operation.is_in_body for armed in self._armed)

    def arm(self, kind: str, operation: str, **fields: Any) -> FaultState:
        """Arm a fault: ``arm("fail", "InvokeTool", nth=2, status=503)``; raise FaultError."""
        return self.arm_document({"kind": kind, "operation": operation, **fields})

    def arm_document(self, document: Mapping[str, Any]) -> FaultState:
        """Arm the fault that a document describes; raise FaultError."""
        fault, operation = parse(document, self._actions)
        with self._lock:
            if len(self._armed) >= MOST:
                raise FaultError(f"{MOST} faults are armed, and that is the limit.")
            armed = self._add(fault, operation)
            state = armed.state()
        armed.publish("armed")
        return state

    def _add(self, fault: Fault, operation: FaultOperation) -> PlannedFault:
        armed = PlannedFault(f"f{next(self._ids)}", fault, operation, self._lock, self._events)
        self._armed = (*self._armed, armed)
        return armed

    def disarm(self, id_: str) -> FaultState:
        """Disarm a fault and release its held calls; raise FaultError for an unknown id."""
        armed = self.find(id_)
        with self._lock:
            # A new tuple: requests iterate over the old one without the lock.
            self._armed = tuple(fault for fault in self._armed if fault is not armed)
        armed.release(disarm=True)
        return armed.state()

    def clear(self) -> None:
        """Disarm every fault and forget the calls that were counted."""
        with self._lock:
            armed, self._armed, self._seen = self._armed, (), {}
        for fault in armed:
            fault.release(disarm=True)

    def reset(self) -> None:
        """Disarm every fault, then arm those of the start again."""
        self.clear()
        with self._lock:
            again = [self._add(fault, operation) for fault, operation in self._at_start]
        for armed in again:
            armed.publish("armed")

    def release(self, id_: str) -> FaultState:
        """Release the calls that a fault holds, but no later ones; raise FaultError."""
        armed = self.find(id_)
        armed.release(disarm=False)
        return armed.state()

    def wait(self, id_: str, *, fired: int = 1, timeout_s: float = 10.0) -> FaultState:
        """Return when a fault has happened ``fired`` times or time is up; raise FaultError."""
        armed = self.find(id_)
        armed.wait(fired, timeout_s)
        return armed.state()

    def states(self) -> tuple[FaultState, ...]:
        """Return the state of each armed fault, in the order in which they were armed."""
        with self._lock:  # so that all states are from the same moment
            return tuple(armed.state() for armed in self._armed)

    def seen(self) -> Mapping[str, int]:
        """Return how often each operation was called while a fault was armed."""
        with self._lock:
            return dict(self._seen)

    def find(self, id_: str) -> PlannedFault:
        """Return the armed fault of that id; raise FaultError if there is none."""
        armed_fault = next((armed for armed in self._armed if armed.id == id_), None)
        if armed_fault is not None:
            return armed_fault
        ids = ", ".join(armed.id for armed in self._armed) or "none"
        raise FaultError(f"There is no armed fault {id_[:80]!r}; there is {ids}.", "id")

    def matching(self, call: FaultableCall) -> tuple[PlannedFault, ...]:
        """Count a call and return the faults for it, in the order in which they were armed."""
        with self._lock:
            if call.label in self._seen or len(self._seen) < _MOST_SEEN:
                self._seen[call.label] = self._seen.get(call.label, 0) + 1
            return tuple(armed for armed in self._armed if armed.is_for(call))
