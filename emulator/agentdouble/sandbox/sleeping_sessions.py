"""The sessions that have expired and can be resumed (U-SNAPSHOT-AUTOMATIC).

Such a session is asleep: a snapshot that was taken at its deadline has its state. Only the newest
ones are kept.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import replace

from agentdouble.core import ledger
from agentdouble.errors import AgentDoubleError
from agentdouble.sandbox.kept_snapshots import KeptSnapshots
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import LastSnapshot
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.sandbox.sessions import Keep
from agentdouble.settings import Settings

EXPIRED, CREATE_FAILED = "Expired", "Create failed"

_log = logging.getLogger(__name__)


class SleepingSessions:
    """Takes the last snapshots of sessions; ``enables_snapshots`` says which tools want that."""

    def __init__(
        self, settings: Settings, kept: KeptSnapshots, enables_snapshots: Callable[[str], bool]
    ) -> None:
        self._most = settings.max_sleeping_sessions
        self._limit = settings.sleeping_sessions_limit
        self._kept = kept
        self._enables_snapshots = enables_snapshots
        self._last: dict[str, str] = {}  # the ids of snapshots by those of their sessions
        self._sizes: dict[str, int] = {}  # memory and files by the ids of snapshots, in bytes

    def _all(self) -> list[SessionSnapshot]:
        """Return the snapshots of sleeping sessions, oldest first."""
        return [it for it in self._kept.all() if it.type == "Automatic" and it.status != "Failed"]

    def load(self) -> None:
        """Find the sleeping sessions among the snapshots that an earlier double has saved."""
        self._last = {snapshot.session_id: snapshot.id for snapshot in self._all()}

    def asleep(self, session_id: str) -> str | None:
        """Return the id of the snapshot with which an expired session wakes, None if it cannot."""
        snapshot = self._kept.find(self._last.get(session_id, ""))
        return None if snapshot is None or snapshot.status == "Failed" else snapshot.id

    def keep(self, session: SandboxSession, at: dt.datetime) -> Keep | None:
        """Begin the snapshot of a session that expires; its record exists at once.

        Return what takes its state, or None if nothing is kept.
        """
        if (
            session.readiness.failed
            or self._most == 0
            or not self._enables_snapshots(session.key.tool_id)
            or ledger.choose("U-SNAPSHOT-AUTOMATIC") == "never"
        ):
            return None
        earlier = self._kept.find(self._last.get(session.id, ""))
        if earlier is not None:  # one is enough: the session that woke with it has had its state
            self._kept.forget(earlier)
        new = replace(
            self._kept.record(session, at), type="Automatic", status="Creating", reason=EXPIRED
        )
        self._kept.put(new)
        self._last[session.id] = new.id
        self._drop_oldest()
        session.log.note(f"falls asleep: snapshot {new.id}")
        return lambda: self._take_last(session, new)

    async def _take_last(self, session: SandboxSession, snapshot: SessionSnapshot) -> None:
        """Take the state of a session that has expired."""
        if snapshot not in self._kept:  # dropped meanwhile, for newer ones
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
            self._kept.fail(snapshot, CREATE_FAILED)
            return
        ready = replace(snapshot, status="Ready", omitted=state.omitted)
        await self._save(ready, state)
        too_large = size > self._limit  # others would be dropped for it
        if too_large or self._kept.closing or snapshot not in self._kept:
            await state.discard()
            if not self._kept.closing:
                self._kept.forget(snapshot)
            return
        self._sizes[snapshot.id] = size
        self._kept.put(ready, state)
        self._drop_oldest()

    async def _save(self, snapshot: SessionSnapshot, state: LastSnapshot) -> None:
        """Save the snapshot of an expired session; if that fails, it is only in memory."""
        try:
            await self._kept.save(snapshot, state)
        except (AgentDoubleError, OSError) as error:
            _log.warning("The sleeping session %s is not saved: %s", snapshot.session_id, error)

    def _drop_oldest(self) -> None:
        """Keep as many sleeping sessions as the settings allow, the newest."""
        asleep = self._all()
        living = {snapshot.id for snapshot in self._kept.living()}
        self._sizes = {id_: size for id_, size in self._sizes.items() if id_ in living}
        self._last = {snapshot.session_id: snapshot.id for snapshot in asleep}
        size = sum(self._sizes.values())
        while len(asleep) > self._most or (size > self._limit and asleep):
            oldest = asleep.pop(0)
            size -= self._sizes.pop(oldest.id, 0)
            _log.info("The sleeping session %s is dropped for newer ones.", oldest.session_id)
            self._kept.forget(oldest)
