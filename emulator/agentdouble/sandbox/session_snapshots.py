"""The snapshots of sessions: taken on request, listed, resumed and deleted."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import Callable
from dataclasses import replace

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import (
    SandboxError,
    SnapshotRefusedError,
    StateError,
    UnknownSessionError,
)
from agentdouble.journal.entries import note_session
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.kept_snapshots import KeptSnapshots
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import Snapshot
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.sleeping_sessions import SleepingSessions
from agentdouble.settings import Settings
from agentdouble.state import Store

_ENDING = dt.timedelta(seconds=10)  # after DeleteSession (U-SNAPSHOT-TERMINATING)


class SessionSnapshots:
    """The session snapshots of a double; belongs to one event loop.

    ``enables_snapshots`` says whether a tool has EnableSnapshot.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        sessions: SandboxSessions,
        store: Store,
        enables_snapshots: Callable[[str], bool],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._sessions = sessions
        self._kept = KeptSnapshots(clock, store, settings.session_snapshot_ttl_s)
        self._taking = 0
        self._resuming: dict[str, asyncio.Task[SandboxSession]] = {}  # by the ids of snapshots
        self._sleeping = SleepingSessions(settings, self._kept, enables_snapshots)
        sessions.keep_expired, sessions.asleep = self._sleeping.keep, self._sleeping.asleep

    async def load(self) -> None:
        """Load the snapshots that an earlier double has saved."""
        await self._kept.load()
        self._sleeping.load()

    def all(self) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of all tools, oldest first."""
        return self._kept.all()

    def of_tool(self, tool_id: str) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of a tool's sessions, oldest first."""
        return tuple(snapshot for snapshot in self.all() if snapshot.key.tool_id == tool_id)

    def get(self, id_: str, tool_id: str) -> SessionSnapshot:
        """Return a snapshot of a tool's session; raise SandboxError."""
        snapshot = self._kept.find(id_)
        if snapshot is None or snapshot.key.tool_id != tool_id:
            message = (
                f"There is no session snapshot {id_!r} of this tool: it was deleted, dropped for "
                "newer ones (RetentionCount, max_sleeping_sessions), or never existed."
            )
            raise SandboxError(message, "InvalidSnapshot.NotFound", 404)
        return snapshot

    async def take(self, session: SandboxSession, retention: int | None = None) -> SessionSnapshot:
        """Take a snapshot; keep only the newest ``retention`` of its user session.

        The files of a user session's snapshots count together against ``workspace_limit``. Raises
        SandboxError if there are too many, StateError if it cannot be saved, and the same errors as
        ``SandboxSession.snapshot``.
        """
        session.check_at_rest()
        too_old = self._surplus(session.key, retention)
        if retention and too_old and ledger.choose("U-SNAPSHOT-RETENTION") == "refused":
            raise _too_many(retention, "the RetentionCount")
        manual = [it for it in self._kept.living() if it.type == "Manual" and it not in too_old]
        most = self._settings.max_session_snapshots
        if len(manual) + self._taking >= most:
            raise _too_many(most, "the setting max_session_snapshots")
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
        new = replace(self._kept.record(session, self._clock.now()), omitted=state.omitted)
        # Checked again, because other snapshots may have come or gone while this one was taken. Its
        # size is known only now; nothing awaits from here until it is counted, so two cannot both
        # pass.
        dropped = self._surplus(session.key, retention)
        others = self._kept.size(it for it in self.all() if it.key == new.key and it not in dropped)
        if others + state.size > self._settings.workspace_limit:
            await state.discard()
            raise SnapshotRefusedError(
                f"its files have {state.size} bytes and those of the session's other snapshots "
                f"{others}, and workspace_limit = {self._settings.workspace_limit} is for all of "
                "them together: delete snapshots, or raise the setting",
                "QuotaExceeded",
            )
        self._kept.put(new, state)
        try:
            await self._kept.save(new, state)
        except StateError:
            self._kept.forget(new)
            raise
        session.log.note(f"snapshot {new.id} taken. {new.left_out}".rstrip())
        for old in dropped:
            session.log.note(f"snapshot {old.id} dropped for newer ones")
        self._kept.forget(*dropped)
        return new

    def _surplus(self, key: InstanceKey, retention: int | None) -> list[SessionSnapshot]:
        """Return a user session's snapshots that one more would push out (RetentionCount)."""
        snapshots = [snapshot for snapshot in self.all() if snapshot.key == key]
        if retention is None or len(snapshots) < retention:
            return []
        return snapshots[: len(snapshots) - retention + 1]

    async def resume(
        self, snapshot: SessionSnapshot, ttl_s: int | None, *, new_instance: bool
    ) -> SandboxSession:
        """Return a session with the state of a snapshot: a new one, or the snapshot's own.

        Its own may have ended (U-SNAPSHOT-ENDED). It is resumed even if the caller is cancelled, and
        once for all who ask meanwhile. Raises SnapshotRefusedError and the errors of
        ``SandboxSessions.get_or_create``.
        """
        if new_instance:
            return await self._resume(snapshot, ttl_s, new_instance=True)
        task = self._resuming.get(snapshot.id)
        if task is None:
            task = asyncio.ensure_future(self._resume(snapshot, ttl_s, new_instance=False))
            self._resuming[snapshot.id] = task
            task.add_done_callback(lambda task: self._note_resumed(snapshot.id, task))
        session = await asyncio.shield(task)
        note_session(session.id)
        return session

    def _note_resumed(self, id_: str, task: asyncio.Task[SandboxSession]) -> None:
        self._resuming.pop(id_, None)
        if not task.cancelled():
            task.exception()  # all callers may have gone

    async def _resume(
        self, snapshot: SessionSnapshot, ttl_s: int | None, *, new_instance: bool
    ) -> SandboxSession:
        state = await self._kept.state(snapshot)
        living = None if new_instance else await self._own(snapshot)
        if living is not None:
            await self._return(living, state, ttl_s)
        else:
            living = await self._begin(snapshot, state, ttl_s, new_instance=new_instance)
        living.log.note(f"has the state of snapshot {snapshot.id}")
        return living

    async def _own(self, snapshot: SessionSnapshot) -> SandboxSession | None:
        """Return the living session that a snapshot is resumed in, or None."""
        if ledger.choose("U-SNAPSHOT-ENDED") == "new-session-id":
            return await self._sessions.find(snapshot.key.tool_id, snapshot.key.user_session_id)
        self._sessions.destroy_due()
        return self._sessions.by_id(snapshot.session_id)

    async def _begin(
        self, snapshot: SessionSnapshot, state: Snapshot, ttl_s: int | None, *, new_instance: bool
    ) -> SandboxSession:
        key, again = snapshot.key, None
        if new_instance:
            if ledger.choose("U-SNAPSHOT-NEW-INSTANCE") == "new":
                key = InstanceKey(key.tool_id, f"u-{secrets.token_hex(10)}")
        else:
            self._check_ended(snapshot)
            if ledger.choose("U-SNAPSHOT-ENDED") == "same-session-id":
                again = (snapshot.session_id, snapshot.session_created_at)
        return await self._sessions.create_from(
            state, key, ttl_s, snapshot.variables, snapshot.metadata, again
        )

    def _check_ended(self, snapshot: SessionSnapshot) -> None:
        """Raise SnapshotRefusedError if a session that has ended cannot be resumed, or not yet."""
        ending = "InvalidSnapshot.InstanceTerminating"
        if ledger.choose("U-SNAPSHOT-ENDED") == "refused":
            raise SnapshotRefusedError("its session has ended", ending)
        if snapshot.type == "Automatic":  # its session has ended at its deadline
            return
        try:
            ended = self._sessions.look_up_ended(snapshot.session_id)
        except UnknownSessionError:
            return
        just_ended = self._sessions.since(ended) < _ENDING
        if just_ended and ledger.choose("U-SNAPSHOT-TERMINATING") == "refused":
            raise SnapshotRefusedError("its session is ending; ask again", ending)

    async def _return(self, living: SandboxSession, state: Snapshot, ttl_s: int | None) -> None:
        if ledger.choose("U-SNAPSHOT-LIVING") == "refused":
            raise SnapshotRefusedError(
                f"its session lives, as the instance {living.id}: end it first, or send "
                "CreateNewInstance true",
                "InvalidSnapshot.InstanceAlreadyExists",
            )
        note_session(living.id)
        living.check_at_rest()  # ``return_to`` would wait for the code and then discard its effects
        await living.return_to(state)
        if ttl_s is not None or ledger.choose("U-SNAPSHOT-TTL") == "anew":
            ttl = dt.timedelta(seconds=ttl_s or self._settings.session_ttl_s)
            self._sessions.set_ttl(living, ttl)

    async def delete(self, snapshot: SessionSnapshot) -> None:
        """Delete a snapshot; sessions resumed from it live on."""
        self._kept.forget(snapshot)
        await self._kept.settle()

    async def note_deletion(self, session_id: str) -> None:
        """Delete the snapshots of a session that was deleted, if so chosen (U-SNAPSHOT-DELETED)."""
        own = [snapshot for snapshot in self.all() if snapshot.session_id == session_id]
        if own and ledger.choose("U-SNAPSHOT-DELETED") == "deleted":
            self._kept.forget(*own)
            await self._kept.settle()

    async def drop_of(self, tool_id: str) -> None:
        """Delete the snapshots of a tool's sessions."""
        self._kept.forget(*self.of_tool(tool_id))
        await self._kept.settle()

    async def reset(self, *, wait: bool = True) -> None:
        """Delete every snapshot; without ``wait`` their processes may end afterwards."""
        self._kept.forget(*self.all())
        if wait:
            await self._kept.settle()

    async def close(self) -> None:
        """End the processes of all snapshots; those that are saved stay in the store."""
        await self._kept.close()


def _too_many(limit: int, by: str) -> SandboxError:
    message = (
        f"{limit} session snapshots are kept and {by} allows no more. Delete one, or raise it."
    )
    return SandboxError(message, "QuotaExceeded", 429)
