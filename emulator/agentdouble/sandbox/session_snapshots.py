"""The snapshots of sessions: taken, counted, listed, resumed and dropped.

A snapshot is a record and a process that holds the state of a kernel. The record may outlive the
process; then it says why it cannot be resumed. No snapshot outlives the double.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import SandboxError, SnapshotRefusedError
from agentdouble.journal.entries import note_session
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.sandbox.session_processes import Snapshot

LOST_KEPT = 100  # records whose state is gone


@dataclass(frozen=True)
class SessionSnapshot:
    """A snapshot of a session; ``lost`` says why it can no longer be resumed, or is None.

    ``omitted`` names parts of the session that the snapshot does not contain; ``variables`` are the
    session's environment variables, and ``metadata`` its texts by key.
    """

    id: str
    key: InstanceKey
    session_id: str
    created_at: dt.datetime
    omitted: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    lost: str | None = None

    @property
    def reason(self) -> str:
        """Why it cannot be resumed, else what it does not contain."""
        if self.lost is not None:
            return self.lost
        return f"Not in it: {', '.join(self.omitted)}" if self.omitted else ""


class SessionSnapshots:
    """The session snapshots of a double, oldest first; belongs to one event loop."""

    def __init__(self, clock: Clock, settings: Settings, sessions: SandboxSessions) -> None:
        self._clock = clock
        self._most = settings.max_session_snapshots
        self._most_bytes = settings.workspace_limit
        self._ttl = dt.timedelta(seconds=settings.session_snapshot_ttl_s)
        self._session_ttl_s = settings.session_ttl_s
        self._sessions = sessions
        self._all: dict[str, SessionSnapshot] = {}
        self._states: dict[str, Snapshot] = {}
        self._taking = 0
        self._discarding: set[asyncio.Task[None]] = set()
        # Ids rise, so that snapshots of the same moment of a frozen clock have an order.
        self._numbers = itertools.count(1)

    def of_tool(self, tool_id: str) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of a tool's sessions, oldest first."""
        self._drop_old()
        return tuple(snapshot for snapshot in self._all.values() if snapshot.key.tool_id == tool_id)

    def get(self, id_: str, tool_id: str) -> SessionSnapshot:
        """Return a snapshot of a tool's session; raise SandboxError."""
        self._drop_old()
        snapshot = self._all.get(id_)
        if snapshot is None or snapshot.key.tool_id != tool_id:
            message = (
                f"There is no session snapshot {id_!r} of this tool: it was deleted, dropped for "
                "newer ones (RetentionCount), or never existed."
            )
            raise SandboxError(message, "InvalidSnapshot.NotFound", 404)
        return snapshot

    async def take(self, session: SandboxSession, retention: int | None = None) -> SessionSnapshot:
        """Take a snapshot; keep only the newest ``retention`` of its user session.

        The files of a user session's snapshots count together against ``workspace_limit``. Raises
        SandboxError if there are too many, and the same errors as ``SandboxSession.snapshot``.
        """
        self._drop_old()
        session.check_at_rest()
        too_old = self._surplus(session.key, retention)
        if retention and too_old and ledger.choose("U-SNAPSHOT-RETENTION") == "refused":
            raise _too_many(retention, "the RetentionCount")
        living = len(self._states.keys() - {snapshot.id for snapshot in too_old})
        if living + self._taking >= self._most:
            raise _too_many(self._most, "the setting max_session_snapshots")
        # A snapshot counts from now on, not only when it is there: several may be on their way.
        self._taking += 1
        try:
            state = await session.snapshot()
        finally:
            self._taking -= 1
        return await self._add(session, state, retention)

    async def _add(
        self, session: SandboxSession, state: Snapshot, retention: int | None
    ) -> SessionSnapshot:
        new = SessionSnapshot(
            id=f"snap-{next(self._numbers):08x}{secrets.token_hex(6)}",
            key=session.key,
            session_id=session.id,
            created_at=self._clock.now(),
            omitted=state.omitted,
            variables=session.variables,
            metadata=session.metadata,
        )
        # Checked again, because other snapshots may have come or gone while this one was taken. Its
        # size is known only now; nothing awaits from here until it is counted, so two cannot both
        # pass.
        dropped = self._surplus(session.key, retention)
        others = sum(
            self._states[other.id].size
            for other in self._all.values()
            if other.key == new.key and other.id in self._states and other not in dropped
        )
        if others + state.size > self._most_bytes:
            await state.discard()
            raise SnapshotRefusedError(
                f"its files have {state.size} bytes and those of the session's other snapshots "
                f"{others}, and workspace_limit = {self._most_bytes} is for all of them together: "
                "delete snapshots, or raise the setting",
                "QuotaExceeded",
            )
        self._all[new.id], self._states[new.id] = new, state
        # If the state is lost already, this is called in the loop's next step.
        state.gone.add_done_callback(lambda _: self._lose(new.id, state.ending))
        session.log.note(f"snapshot {new.id} taken. {new.reason}".rstrip())
        for old in dropped:
            session.log.note(f"snapshot {old.id} dropped for newer ones")
            self._forget(old)
        return new

    def _surplus(self, key: InstanceKey, retention: int | None) -> list[SessionSnapshot]:
        """Return a user session's snapshots that one more would push out (RetentionCount)."""
        snapshots = [snapshot for snapshot in self._all.values() if snapshot.key == key]
        if retention is None or len(snapshots) < retention:
            return []
        return snapshots[: len(snapshots) - retention + 1]

    async def resume(
        self, snapshot: SessionSnapshot, ttl_s: int | None, *, new_instance: bool
    ) -> SandboxSession:
        """Return a session with the state of a snapshot: a new one, or the user session's own.

        A new one has its own UserSessionId. Raises SnapshotRefusedError and the errors of
        ``SandboxSessions.get_or_create``.
        """
        state = self._states.get(snapshot.id)
        # If it is lost later, while it is copied, the copy fails and says so.
        if state is None or state.gone.done():
            reason = snapshot.lost or "its process has ended"
            raise SnapshotRefusedError(
                f"the state of {snapshot.id!r} is gone ({reason}); take another one",
                "InvalidSnapshot.NotReady",
            )
        key = snapshot.key
        if new_instance:
            key = InstanceKey(key.tool_id, f"u-{secrets.token_hex(10)}")
        living = await self._sessions.find(key.tool_id, key.user_session_id)
        if living is not None:
            await self._return(living, state, ttl_s)
        else:
            if not new_instance and ledger.choose("U-SNAPSHOT-ENDED") == "refused":
                raise SnapshotRefusedError(
                    "its session has ended", "InvalidSnapshot.InstanceTerminating"
                )
            living = await self._sessions.create_from(
                state, key, ttl_s, snapshot.variables, snapshot.metadata
            )
        living.log.note(f"has the state of snapshot {snapshot.id}")
        return living

    async def _return(self, living: SandboxSession, state: Snapshot, ttl_s: int | None) -> None:
        if ledger.choose("U-SNAPSHOT-LIVING") == "refused":
            raise SnapshotRefusedError(
                f"its session lives, as the instance {living.id}: end it first, or send "
                "CreateNewInstance true",
                "InvalidSnapshot.InstanceRunning",
            )
        note_session(living.id)
        living.check_at_rest()  # ``return_to`` would wait for the code and then discard its effects
        await living.return_to(state)
        if ttl_s is not None or ledger.choose("U-SNAPSHOT-TTL") == "anew":
            ttl = dt.timedelta(seconds=ttl_s or self._session_ttl_s)
            self._sessions.set_ttl(living, ttl)

    async def delete(self, snapshot: SessionSnapshot) -> None:
        """Delete a snapshot; sessions resumed from it live on."""
        self._forget(snapshot)
        await self._settle()

    async def drop_of(self, tool_id: str) -> None:
        """Delete the snapshots of a tool's sessions."""
        for snapshot in self.of_tool(tool_id):
            self._forget(snapshot)
        await self._settle()

    async def reset(self, *, wait: bool = True) -> None:
        """Delete every snapshot; without ``wait`` their processes may end afterwards."""
        for snapshot in [*self._all.values()]:
            self._forget(snapshot)
        if wait:
            await self._settle()

    async def close(self) -> None:
        """End the processes of all snapshots."""
        for id_ in [*self._states]:
            self._discard(id_)
        await self._settle()

    async def _settle(self) -> None:
        if self._discarding:
            await asyncio.wait(set(self._discarding))

    def _drop_old(self) -> None:
        now = self._clock.now()
        for id_ in [*self._states]:
            if self._all[id_].created_at + self._ttl <= now:
                self._lose(
                    id_, f"it was older than {self._ttl} (the setting session_snapshot_ttl_s)"
                )

    def _lose(self, id_: str, reason: str) -> None:
        """Keep the record of a snapshot whose state is gone."""
        if self._discard(id_):
            self._all[id_] = replace(self._all[id_], lost=reason)
            lost = [snapshot for snapshot in self._all.values() if snapshot.lost is not None]
            for snapshot in lost[:-LOST_KEPT]:
                self._forget(snapshot)

    def _forget(self, snapshot: SessionSnapshot) -> None:
        self._discard(snapshot.id)
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


def _too_many(limit: int, by: str) -> SandboxError:
    message = (
        f"{limit} session snapshots are kept and {by} allows no more. Delete one, or raise it."
    )
    return SandboxError(message, "QuotaExceeded", 429)
