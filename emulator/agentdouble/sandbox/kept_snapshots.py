"""The snapshots that are kept: their records, and the states that can be resumed.

A state is the processes and files that a session had. A record may outlive it; then it says why the
snapshot cannot be resumed. With a store that outlives the double, the files of snapshots outlive it
too.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import secrets
from collections.abc import Iterable
from dataclasses import replace

from agentdouble.core.clock import Clock
from agentdouble.errors import SnapshotRefusedError
from agentdouble.sandbox.saved_snapshots import SavedSnapshots
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import Snapshot
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.state import Store

LOST_KEPT = 100  # records whose state is gone


class KeptSnapshots:
    """The snapshots of a double, oldest first; belongs to one event loop.

    Those older than ``most_s`` seconds are lost.
    """

    def __init__(self, clock: Clock, store: Store, most_s: int | None) -> None:
        self._clock = clock
        self._age = None if most_s is None else dt.timedelta(seconds=most_s)
        self._saved = SavedSnapshots(store)
        self._all: dict[str, SessionSnapshot] = {}
        self._states: dict[str, Snapshot] = {}
        self._discarding: set[asyncio.Task[None]] = set()
        # Ids rise, so that snapshots of the same moment of a frozen clock have an order.
        self._numbers = itertools.count(1)
        self.closing = False

    async def load(self) -> None:
        """Load the snapshots that an earlier double has saved."""
        for snapshot in await self._saved.load():
            self._all[snapshot.id] = snapshot
            self._numbers = itertools.count(int(snapshot.id[5:13], 16) + 1)

    def __contains__(self, snapshot: SessionSnapshot) -> bool:
        return snapshot.id in self._all

    def all(self) -> tuple[SessionSnapshot, ...]:
        """Return all snapshots, oldest first."""
        self._lose_old()
        return tuple(self._all.values())

    def find(self, id_: str) -> SessionSnapshot | None:
        """Return a snapshot by its id, or None."""
        self._lose_old()
        return self._all.get(id_)

    def _lose_old(self) -> None:
        if self._age is None:
            return
        oldest = self._clock.now() - self._age
        for id_ in [*self._states]:
            if self._all[id_].created_at <= oldest:
                reason = f"it was older than {self._age} (the setting session_snapshot_ttl_s)"
                self._lose(id_, reason)

    def record(self, session: SandboxSession, at: dt.datetime) -> SessionSnapshot:
        """Return a new record of a session, which is not kept yet."""
        return SessionSnapshot(
            id=f"snap-{next(self._numbers):08x}{secrets.token_hex(6)}",
            key=session.key,
            session_id=session.id,
            session_created_at=session.created_at,
            created_at=at,
            variables=session.variables,
            metadata=session.metadata,
        )

    def put(self, snapshot: SessionSnapshot, state: Snapshot | None = None) -> None:
        """Keep a snapshot, or replace its record; ``state`` is what can be resumed."""
        self._all[snapshot.id] = snapshot
        if state is not None:
            self._states[snapshot.id] = state
            # If the state is lost already, this is called in the loop's next step.
            state.gone.add_done_callback(lambda _: self._lose(snapshot.id, state.ending))

    async def save(self, snapshot: SessionSnapshot, state: Snapshot) -> None:
        """Save a snapshot if the store outlives the double; raise StateError and OSError."""
        await self._saved.save(snapshot, state)

    def living(self) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots with a state of this double."""
        return tuple(self._all[id_] for id_ in self._states)

    def size(self, snapshots: Iterable[SessionSnapshot]) -> int:
        """Return the size of the files of snapshots, in bytes."""
        return sum(self._states[it.id].size for it in snapshots if it.id in self._states)

    async def state(self, snapshot: SessionSnapshot) -> Snapshot:
        """Return the state of a snapshot, or its saved files; raise SnapshotRefusedError."""
        if snapshot.status == "Creating":
            raise SnapshotRefusedError(
                f"{snapshot.id!r} is being created; ask again", "InvalidSnapshot.NotReady"
            )
        state = self._states.get(snapshot.id)
        if state is None and snapshot.status == "Ready":
            return await self._saved.read(snapshot)
        # If it is lost later, while it is copied, the copy fails and says so.
        if state is None or state.gone.done():
            reason = snapshot.reason or "its process has ended"
            raise SnapshotRefusedError(
                f"the state of {snapshot.id!r} is gone ({reason}); take another one",
                "InvalidSnapshot.NotReady",
            )
        return state

    def fail(self, snapshot: SessionSnapshot, reason: str) -> None:
        """Keep the record of a snapshot without a state."""
        if snapshot.id in self._all:
            self._all[snapshot.id] = replace(snapshot, status="Failed", reason=reason)
        failed = [other for other in self._all.values() if other.status == "Failed"]
        for other in failed[:-LOST_KEPT]:
            self.forget(other)

    def _lose(self, id_: str, reason: str) -> None:
        """Keep the record of a snapshot whose state is gone."""
        if self._discard(id_):
            self._saved.forget(id_)
            self.fail(self._all[id_], reason)

    def forget(self, *snapshots: SessionSnapshot) -> None:
        """Delete snapshots; their processes end in the background."""
        for snapshot in snapshots:
            self._discard(snapshot.id)
            self._saved.forget(snapshot.id)
            self._all.pop(snapshot.id, None)

    def _discard(self, id_: str) -> bool:
        """End the process of a snapshot, in the background; return whether there was one."""
        # Removed first, so that ``gone``, which follows, finds nothing to lose.
        state = self._states.pop(id_, None)
        if state is None:
            return False
        task = asyncio.ensure_future(state.discard())
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)
        return True

    async def settle(self) -> None:
        """Return when the processes of deleted snapshots have ended."""
        if self._discarding:
            await asyncio.wait(set(self._discarding))

    async def close(self) -> None:
        """End the processes of all snapshots; those that are saved stay in the store."""
        self.closing = True  # sessions may still be falling asleep
        for id_ in [*self._states]:
            self._discard(id_)
        await self.settle()
