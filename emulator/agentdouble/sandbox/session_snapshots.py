"""The snapshots of sessions: taken on request or at their deadline, listed, resumed and dropped.

A snapshot is a record and a state: the processes and files that a session had. The record may
outlive the state; then it says why it cannot be resumed. A session that expires is asleep while
such a snapshot of it exists. With a store that outlives the double, the files of snapshots outlive
it too.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import AgentDoubleError, SandboxError, SnapshotRefusedError, StateError
from agentdouble.journal.entries import note_session
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.saved_snapshots import SavedSnapshots
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import LastSnapshot, Snapshot
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.sandbox.sessions import Keep, SandboxSessions
from agentdouble.settings import Settings
from agentdouble.state import Store

LOST_KEPT = 100  # records whose state is gone
EXPIRED, CREATE_FAILED = "Expired", "Create failed"
_ENDING = dt.timedelta(seconds=10)  # after DeleteSession (U-SNAPSHOT-TERMINATING)

_log = logging.getLogger(__name__)


class SessionSnapshots:
    """The session snapshots of a double, oldest first; belongs to one event loop.

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
        self._saved = SavedSnapshots(store)
        self._enables_snapshots = enables_snapshots
        self._all: dict[str, SessionSnapshot] = {}
        self._states: dict[str, Snapshot] = {}
        self._sizes: dict[str, int] = {}  # memory and files of the sleeping sessions, in bytes
        self._taking = 0
        self._work: set[asyncio.Task[None]] = set()
        self._resuming: dict[str, asyncio.Task[SandboxSession]] = {}  # by the ids of snapshots
        self._closing = False
        # Ids rise, so that snapshots of the same moment of a frozen clock have an order.
        self._numbers = itertools.count(1)
        self._last: dict[str, str] = {}  # the ids of automatic snapshots by those of their sessions
        sessions.keep_expired = self._keep_expired
        sessions.asleep = self.asleep

    async def load(self) -> None:
        """Load the snapshots that an earlier double has saved."""
        for snapshot in await self._saved.load():
            self._add_record(snapshot)
            self._numbers = itertools.count(int(snapshot.id[5:13], 16) + 1)

    def _add_record(self, snapshot: SessionSnapshot) -> None:
        self._all[snapshot.id] = snapshot
        if snapshot.type == "Automatic":
            self._last[snapshot.session_id] = snapshot.id

    def asleep(self, session_id: str) -> str | None:
        """Return the id of the snapshot with which an expired session wakes, None if it cannot."""
        snapshot = self._all.get(self._last.get(session_id, ""))
        return None if snapshot is None or snapshot.status == "Failed" else snapshot.id

    def all(self) -> tuple[SessionSnapshot, ...]:
        """Return all snapshots, oldest first."""
        self._drop_old()
        return tuple(self._all.values())

    def of_tool(self, tool_id: str) -> tuple[SessionSnapshot, ...]:
        """Return the snapshots of a tool's sessions, oldest first."""
        return tuple(snapshot for snapshot in self.all() if snapshot.key.tool_id == tool_id)

    def get(self, id_: str, tool_id: str) -> SessionSnapshot:
        """Return a snapshot of a tool's session; raise SandboxError."""
        self._drop_old()
        snapshot = self._all.get(id_)
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
        self._drop_old()
        session.check_at_rest()
        too_old = self._surplus(session.key, retention)
        if retention and too_old and ledger.choose("U-SNAPSHOT-RETENTION") == "refused":
            raise _too_many(retention, "the RetentionCount")
        manual = {id_ for id_ in self._states if self._all[id_].type == "Manual"}
        living = len(manual - {snapshot.id for snapshot in too_old})
        most = self._settings.max_session_snapshots
        if living + self._taking >= most:
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
        new = replace(self._record(session, self._clock.now()), omitted=state.omitted)
        # Checked again, because other snapshots may have come or gone while this one was taken. Its
        # size is known only now; nothing awaits from here until it is counted, so two cannot both
        # pass.
        dropped = self._surplus(session.key, retention)
        others = sum(
            self._states[other.id].size
            for other in self._all.values()
            if other.key == new.key and other.id in self._states and other not in dropped
        )
        if others + state.size > self._settings.workspace_limit:
            await state.discard()
            raise SnapshotRefusedError(
                f"its files have {state.size} bytes and those of the session's other snapshots "
                f"{others}, and workspace_limit = {self._settings.workspace_limit} is for all of "
                "them together: delete snapshots, or raise the setting",
                "QuotaExceeded",
            )
        self._all[new.id] = new
        self._hold(new, state)
        try:
            await self._saved.save(new, state)
        except StateError:
            self._forget(new)
            raise
        session.log.note(f"snapshot {new.id} taken. {new.left_out}".rstrip())
        for old in dropped:
            session.log.note(f"snapshot {old.id} dropped for newer ones")
            self._forget(old)
        return new

    def _record(self, session: SandboxSession, at: dt.datetime) -> SessionSnapshot:
        return SessionSnapshot(
            id=f"snap-{next(self._numbers):08x}{secrets.token_hex(6)}",
            key=session.key,
            session_id=session.id,
            session_created_at=session.created_at,
            created_at=at,
            variables=session.variables,
            metadata=session.metadata,
        )

    def _hold(self, snapshot: SessionSnapshot, state: Snapshot) -> None:
        self._states[snapshot.id] = state
        # If the state is lost already, this is called in the loop's next step.
        state.gone.add_done_callback(lambda _: self._lose(snapshot.id, state.ending))

    def _surplus(self, key: InstanceKey, retention: int | None) -> list[SessionSnapshot]:
        """Return a user session's snapshots that one more would push out (RetentionCount)."""
        snapshots = [snapshot for snapshot in self._all.values() if snapshot.key == key]
        if retention is None or len(snapshots) < retention:
            return []
        return snapshots[: len(snapshots) - retention + 1]

    def _keep_expired(self, session: SandboxSession, at: dt.datetime) -> Keep | None:
        """Begin the snapshot of a session that expires (U-SNAPSHOT-AUTOMATIC).

        Its record exists at once. Return what takes its state, or None if nothing is kept.
        """
        if (
            session.readiness.failed
            or self._settings.max_sleeping_sessions == 0
            or not self._enables_snapshots(session.key.tool_id)
            or ledger.choose("U-SNAPSHOT-AUTOMATIC") == "never"
        ):
            return None
        earlier = self._last.get(session.id)
        if earlier is not None:  # one is enough: the session that woke with it has had its state
            self._forget(self._all[earlier])
        new = replace(
            self._record(session, at), type="Automatic", status="Creating", reason=EXPIRED
        )
        self._add_record(new)
        self._drop_oldest_asleep()
        session.log.note(f"falls asleep: snapshot {new.id}")
        return lambda: self._take_last(session, new)

    async def _take_last(self, session: SandboxSession, snapshot: SessionSnapshot) -> None:
        """Take the state of a session that has expired."""
        if snapshot.id not in self._all:  # dropped meanwhile, for newer ones
            return
        state: LastSnapshot | None = None
        try:
            state = await session.last_snapshot()
            size = await state.measure()
        except Exception as error:  # whatever it is, the end of the session goes on
            _log.warning("The snapshot of the expired session %s failed: %r", session.id, error)
            session.log.note(f"its snapshot failed: {error!r}")
            if state is not None:
                await state.discard()
            self._fail(snapshot, CREATE_FAILED)
            return
        ready = replace(snapshot, status="Ready", omitted=state.omitted)
        await self._save_last(ready, state)
        too_large = size > self._settings.sleeping_sessions_limit  # others would be dropped for it
        if too_large or self._closing or snapshot.id not in self._all:
            await state.discard()
            if not self._closing:
                self._forget(snapshot)
            return
        self._all[snapshot.id] = ready
        self._sizes[snapshot.id] = size
        self._hold(ready, state)
        self._drop_oldest_asleep()

    async def _save_last(self, snapshot: SessionSnapshot, state: Snapshot) -> None:
        """Save the snapshot of an expired session; if that fails, it is only in memory."""
        try:
            await self._saved.save(snapshot, state)
        except (AgentDoubleError, OSError) as error:
            _log.warning("The sleeping session %s is not saved: %s", snapshot.session_id, error)

    def _fail(self, snapshot: SessionSnapshot, reason: str) -> None:
        """Keep the record of a snapshot without a state."""
        if snapshot.id in self._all:
            self._all[snapshot.id] = replace(snapshot, status="Failed", reason=reason)
        failed = [other for other in self._all.values() if other.status == "Failed"]
        for other in failed[:-LOST_KEPT]:
            self._forget(other)

    def _automatic(self) -> list[SessionSnapshot]:
        return [snapshot for snapshot in self._all.values() if snapshot.type == "Automatic"]

    def _drop_oldest_asleep(self) -> None:
        """Keep as many sleeping sessions as the settings allow, the newest."""
        asleep = [snapshot for snapshot in self._automatic() if snapshot.status != "Failed"]
        size = sum(self._sizes.values())
        most, limit = self._settings.max_sleeping_sessions, self._settings.sleeping_sessions_limit
        while len(asleep) > most or (size > limit and asleep):
            oldest = asleep.pop(0)
            size -= self._sizes.get(oldest.id, 0)
            _log.info("The sleeping session %s is dropped for newer ones.", oldest.session_id)
            self._forget(oldest)

    async def resume(
        self, snapshot: SessionSnapshot, ttl_s: int | None, *, new_instance: bool
    ) -> SandboxSession:
        """Return a session with the state of a snapshot: a new one, or the snapshot's own.

        The own one may have ended (U-SNAPSHOT-ENDED). It is resumed even if the caller is cancelled,
        and once for all who ask meanwhile. Raises SnapshotRefusedError and the errors of
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
        state = await self._state_of(snapshot)
        living = None if new_instance else await self._own(snapshot)
        if living is not None:
            await self._return(living, state, ttl_s)
        else:
            living = await self._begin(snapshot, state, ttl_s, new_instance=new_instance)
        living.log.note(f"has the state of snapshot {snapshot.id}")
        return living

    async def _state_of(self, snapshot: SessionSnapshot) -> Snapshot:
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
        ended = next((it for it in self._sessions.ended() if it.id == snapshot.session_id), None)
        if ended is None or self._clock.now() >= ended.at + _ENDING:
            return
        if snapshot.type == "Manual" and ledger.choose("U-SNAPSHOT-TERMINATING") == "refused":
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
        self._forget(snapshot)
        await self._settle()

    async def note_deletion(self, session_id: str) -> None:
        """Delete the snapshots of a session that was deleted, if so chosen (U-SNAPSHOT-DELETED)."""
        own = [snapshot for snapshot in self._all.values() if snapshot.session_id == session_id]
        if own and ledger.choose("U-SNAPSHOT-DELETED") == "deleted":
            for snapshot in own:
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
        self._closing = True  # sessions may still be falling asleep
        for id_ in [*self._states]:
            self._discard(id_)
        await self._settle()

    async def _settle(self) -> None:
        if self._work:
            await asyncio.wait(set(self._work))

    def _drop_old(self) -> None:
        if self._settings.session_snapshot_ttl_s is None:
            return
        age = dt.timedelta(seconds=self._settings.session_snapshot_ttl_s)
        now = self._clock.now()
        for id_ in [*self._states]:
            if self._all[id_].created_at + age <= now:
                self._lose(id_, f"it was older than {age} (the setting session_snapshot_ttl_s)")

    def _lose(self, id_: str, reason: str) -> None:
        """Keep the record of a snapshot whose state is gone."""
        if self._discard(id_):
            self._saved.forget(id_)
            self._fail(self._all[id_], reason)

    def _forget(self, snapshot: SessionSnapshot) -> None:
        self._discard(snapshot.id)
        self._saved.forget(snapshot.id)
        self._all.pop(snapshot.id, None)
        if self._last.get(snapshot.session_id) == snapshot.id:
            del self._last[snapshot.session_id]

    def _discard(self, id_: str) -> bool:
        """End the process of a snapshot, in the background; return whether there was one."""
        # Removed first, so that ``gone``, which follows, finds nothing to lose.
        self._sizes.pop(id_, None)
        state = self._states.pop(id_, None)
        if state is None:
            return False
        task = asyncio.ensure_future(state.discard())
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return True


def _too_many(limit: int, by: str) -> SandboxError:
    message = (
        f"{limit} session snapshots are kept and {by} allows no more. Delete one, or raise it."
    )
    return SandboxError(message, "QuotaExceeded", 429)
