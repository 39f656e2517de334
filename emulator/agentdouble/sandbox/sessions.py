"""Sessions: made on first use, reused, destroyed on time (section 3).

A session belongs to a tool and a user session. Only sessions from snapshots can share a user
session; its calls use the oldest. A session has a deadline on the platform's clock. The reaper
destroys a session that is due, unless a request comes first and does it.
"""

from __future__ import annotations

import asyncio
import bisect
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.core.threads import pause
from agentdouble.errors import (
    InstanceEndedError,
    SnapshotRefusedError,
    StateError,
    UnknownSessionError,
)
from agentdouble.journal.entries import note_session
from agentdouble.sandbox.ended_sessions import (
    EXPIRED_AT,
    EndedSession,
    EndedSessions,
    ended_session,
)
from agentdouble.sandbox.execution import FAILED
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.lifetime import Lifetime, may_begin_again
from agentdouble.sandbox.output_feed import ExecutionPublisher, OutputFeed
from agentdouble.sandbox.placement import LocalPlacement, Placement
from agentdouble.sandbox.readiness import Readiness
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session import Identity, SandboxSession, new_identity
from agentdouble.sandbox.session_events import SessionEvents
from agentdouble.sandbox.session_log import SessionLog
from agentdouble.sandbox.session_processes import EmptySnapshot
from agentdouble.sandbox.session_usage import SessionUsage
from agentdouble.settings import Settings
from agentdouble.state import Store

if TYPE_CHECKING:
    from agentdouble.sandbox.session_processes import Snapshot

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.25
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ENDLESS_S = 10 * 365 * 86_400
_NEVER = dt.datetime.max.replace(tzinfo=dt.timezone.utc)

VariablesOf = Callable[[str], Mapping[str, str]]
Keep = Callable[[], Awaitable[None]]
KeepExpired = Callable[[SandboxSession, dt.datetime], "Keep | None"]


def _no_variables(_tool_id: str) -> Mapping[str, str]:
    return _NOTHING


def _keep_nothing(_session: SandboxSession, _at: dt.datetime) -> None:
    return None


class SandboxSessions:
    """The living sessions, and the records of those that have ended.

    ``variables_of`` returns the environment variables of a tool's sessions, and raises
    UnknownToolError if there is no such tool. ``store`` keeps the records. ``placement`` says where
    their processes run, by default here. ``on_end`` is called with each session that has ended and
    the reason, and ``keep_expired`` with each that expires: what it returns is awaited before the
    processes end. ``asleep`` returns the id of the snapshot with which an expired session wakes.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        *,
        store: Store | None = None,
        variables_of: VariablesOf = _no_variables,
        events: EventBus | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._clock = clock
        self.settings = settings
        self._store = store or Store()
        self._variables_of = variables_of
        self._closing = False
        self._events = SessionEvents(events or EventBus(), clock, lambda id_: self.asleep(id_))
        self.feed = OutputFeed()
        self.placement: Placement = placement or LocalPlacement(settings)
        self._by_key: dict[InstanceKey, list[SandboxSession]] = {}  # the oldest first
        self._by_id: dict[str, SandboxSession] = {}  # oldest first
        self._earliest = _NEVER  # a lower bound of the deadlines of all living sessions
        self._history = EndedSessions(self._store)
        self._ending: set[asyncio.Task[None]] = set()
        self.on_end: Callable[[SandboxSession, str], None] = lambda _session, _reason: None
        self.keep_expired: KeepExpired = _keep_nothing
        self.asleep: Callable[[str], str | None] = lambda _session_id: None
        self.usage = SessionUsage(settings, self._by_id, self.destroy)

    def __len__(self) -> int:
        return len(self._by_id)

    def living(self) -> tuple[SandboxSession, ...]:
        """Return the living sessions, oldest first, including those that are due."""
        return tuple(self._by_id.values())

    def of_tool(self, tool_id: str) -> tuple[SandboxSession, ...]:
        """Return the living sessions of a tool, oldest first, including those that are due."""
        return tuple(session for session in self.living() if session.key.tool_id == tool_id)

    def ended(self) -> tuple[EndedSession, ...]:
        """Return the sessions that have ended and are remembered, oldest first."""
        return self._history.all()

    def since(self, ended: EndedSession) -> dt.timedelta:
        """Return how long ago a session ended."""
        return self._clock.now() - ended.at

    async def load(self) -> None:
        """Load the records of the store; sessions that lived then ended with that process."""
        await self._history.load(self._clock.now())

    async def get_or_create(
        self,
        tool_id: str,
        user_session_id: str,
        ttl_s: int | None = None,
        variables: Mapping[str, str] = _NOTHING,
        metadata: Mapping[str, str] = _NOTHING,
    ) -> SandboxSession:
        """Return the session; make it if there is none (SBX-01, SBX-02).

        ``variables`` are added to those of the tool. They, ``metadata`` and ``ttl_s`` (seconds)
        take effect only if this call makes the session (but see U-TTL-REPEATED). Raises
        TooManySandboxSessionsError at the limit, UnknownToolError, and InstanceEndedError if the
        ledger says that an ended session stays ended (U-TTL-AFTER).
        """
        self.destroy_due()
        key = InstanceKey(tool_id, user_session_id)
        session = self.oldest(key)
        if session is None:
            ended = self._history.latest(key)
            if ended is not None and not may_begin_again():
                raise InstanceEndedError(user_session_id, ended.dated_reason)
            variables = {**self._variables_of(tool_id), **variables}
            await self.placement.ready()
            # Another call may have made it while this one waited for a first node. From here until
            # it is among the living nothing suspends, so no two calls make it.
            session = self.oldest(key)
        if session is not None:
            return self.use(session, ttl_s)
        session = self._make(key, ttl_s, variables, metadata)
        ended = self._history.latest(key)
        if ended is not None:
            session.notice = (
                "This is a new instance of the session, without the context of the one before, "
                f"which has ended: {ended.dated_reason}."
            )
        await self._record(session)
        return session

    def by_id(self, session_id: str) -> SandboxSession | None:
        """Return the living session with that SessionId, or None; this does not count as use."""
        return self._by_id.get(session_id)

    async def find(self, tool_id: str, user_session_id: str) -> SandboxSession | None:
        """Return the oldest living session of a user session; this does not count as use."""
        self.destroy_due()
        return self.oldest(InstanceKey(tool_id, user_session_id))

    def oldest(self, key: InstanceKey) -> SandboxSession | None:
        """Return the oldest living session of a user session, which ``find`` finds, or None."""
        sessions = self._by_key.get(key)
        return sessions[0] if sessions else None

    def use(self, session: SandboxSession, ttl_s: int | None = None) -> SandboxSession:
        """Use a living session, and move its deadline if the ledger says so."""
        note_session(session.id)
        ttl = None if ttl_s is None else dt.timedelta(seconds=ttl_s)
        if session.lifetime.renew(self._clock.now(), ttl):
            self._earliest = min(self._earliest, session.lifetime.deadline)
            self._events.publish(session, "ttl")
        return session

    async def look_up(self, session_id: str, tool_id: str | None = None) -> SandboxSession:
        """Return a tool's living session with that SessionId; this does not count as use.

        Raises UnknownSessionError, and InstanceEndedError if the session has ended.
        """
        self.destroy_due()
        session = self._by_id.get(session_id)
        if session is not None and tool_id in (None, session.key.tool_id):
            note_session(session.id)
            return session
        ended = self.look_up_ended(session_id, tool_id)
        raise InstanceEndedError(session_id, ended.dated_reason)

    def look_up_ended(self, session_id: str, tool_id: str | None = None) -> EndedSession:
        """Return an ended session of that tool; raise UnknownSessionError if there is none."""
        ended = self._history.find(session_id)
        if tool_id not in (None, ended.key.tool_id):
            raise UnknownSessionError(session_id)
        return ended

    async def create_from(
        self,
        snapshot: Snapshot,
        key: InstanceKey,
        ttl_s: int | None,
        variables: Mapping[str, str],
        metadata: Mapping[str, str],
        again: tuple[str, dt.datetime] | None = None,
    ) -> SandboxSession:
        """Make a session with the state of a snapshot, beside other sessions of ``key``.

        ``again`` are the id and the creation of an ended session that lives again. Raises
        SnapshotRefusedError if it lives already, and the same errors as ``get_or_create`` and
        ``SandboxSession.return_to``.
        """
        new_id, token = new_identity()
        id_, created_at = again or (new_id, None)
        variables = {**self._variables_of(key.tool_id), **variables}
        await self.placement.ready()
        session = self._make(key, ttl_s, variables, metadata, (id_, token), created_at)
        try:
            if isinstance(snapshot, EmptySnapshot):
                await self._record(session)
            else:  # It can be reached already, but no code runs in it before it has the state.
                await session.return_to(snapshot, first=lambda: self._record(session))
            session.readiness = Readiness()  # no client has used it by returning to the snapshot
            session.readiness.begin()
        except BaseException:
            if self._by_id.get(id_) is session:
                self._destroy_in_background(session, "it could not be created from its snapshot")
            raise
        return session

    async def create_as(
        self, identity: Identity, key: InstanceKey, variables: Mapping[str, str]
    ) -> SandboxSession:
        """Make a session with the id and the token that another double chose for it.

        It lives until the other double ends it. Raises the same errors as ``get_or_create``.
        """
        variables = {**self._variables_of(key.tool_id), **variables}
        session = self._make(key, _ENDLESS_S, variables, _NOTHING, identity)
        await self._record(session)
        return session

    def _make(
        self,
        key: InstanceKey,
        ttl_s: int | None,
        variables: Mapping[str, str],
        metadata: Mapping[str, str],
        identity: Identity | None = None,
        created_at: dt.datetime | None = None,
    ) -> SandboxSession:
        """Add a session to the living ones.

        ``created_at`` is the first creation of a session that lives again.
        """
        if identity is not None and identity[0] in self._by_id:
            raise SnapshotRefusedError(
                f"its session lives again, as {identity[0]}",
                "InvalidSnapshot.InstanceAlreadyExists",
            )
        self.placement.check(len(self._by_id))
        now = self._clock.now()
        session = SandboxSession(
            key,
            Lifetime(now, dt.timedelta(seconds=ttl_s or self.settings.session_ttl_s)),
            identity=identity or new_identity(),
            created_at=created_at or now,
            variables=variables,
            metadata=metadata,
            log=SessionLog(self._clock),
            place=self.placement.processes_for,
            on_lost=self._destroy_in_background,
            expire=self._expire,
            on_change=self.usage.mark_active,
            on_occupancy=self._events.publish,
        )
        bisect.insort(self._by_key.setdefault(key, []), session, key=lambda it: it.created_at)
        self._by_id[session.id] = session
        self._earliest = min(self._earliest, session.lifetime.deadline)
        note_session(session.id)
        session.log.note(f"created; expires at {session.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ}")
        self._events.publish(session, "begun")
        return session

    async def _record(self, session: SandboxSession) -> None:
        """Record a new session; end it and raise StateError if that fails."""
        try:
            await self._history.begin(session)
        except StateError:
            self._undo_creation(session)
            raise

    def _undo_creation(self, session: SandboxSession) -> None:
        """End a session as if it had never been made, because its record was not saved."""
        reason = "its record could not be saved"
        session.refuse(reason)
        if self._remove(session):
            self._events.ended(ended_session(session, reason, self._clock.now()))
        self._ending_of(session, reason).add_done_callback(_log_failure)

    async def execute(
        self,
        session: SandboxSession,
        code: str,
        language: str,
        timeout_s: float,
        cwd: str | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code in a session; destroy the session if the result ends it.

        ``cwd`` and ``publisher`` are as in ``SandboxSession.execute``.
        """
        session.log.note(f"was asked to run {language}: {code}")
        result = await session.execute(code, language, timeout_s, cwd, publisher)
        session.log.note(f"ran execution {result.execution_count}: {result.status}")
        if result.ends_session:
            await self.destroy(session, result.message.removeprefix(FAILED).rstrip("."))
        return replace(result, message=session.take_notice(result.message))

    async def destroy(
        self, session: SandboxSession, reason: str, at: dt.datetime | None = None
    ) -> None:
        """End a session and remember why; return when its processes have ended (SBX-03).

        ``at`` is the time of the end, if that is not now.
        """
        self._make_unreachable(session, reason, at)
        # A caller that leaves must not stop an end half-way, with processes or files left.
        await asyncio.shield(self._ending_of(session, reason))
        with suppress(StateError):  # the session has ended, even if this write fails
            await self._store.saved()

    def _make_unreachable(
        self, session: SandboxSession, reason: str, at: dt.datetime | None = None
    ) -> None:
        """Make a session unreachable, and remember its end."""
        # Several reasons may come in one step of the loop, such as the death of a kernel and the
        # deadline. The first is kept, here and in ``refuse``.
        session.refuse(reason)
        if self._remove(session):
            self._remember(session, reason, at or self._clock.now())

    def _remove(self, session: SandboxSession) -> bool:
        """Remove a session from the living ones; return whether it was there."""
        if self._by_id.pop(session.id, None) is None:
            return False
        of_key = self._by_key[session.key]
        of_key.remove(session)
        if not of_key:
            del self._by_key[session.key]
        self.usage.forget(session)
        return True

    def _ending_of(
        self, session: SandboxSession, reason: str, keep: Keep | None = None
    ) -> asyncio.Task[None]:
        # One end for each session: a second would kill the processes that the first still keeps.
        if session.ending is None:
            session.ending = task = asyncio.ensure_future(session.end(reason, keep))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        return session.ending

    def _remember(self, session: SandboxSession, reason: str, at: dt.datetime) -> None:
        """Record when and why a session ended.

        A double that stops records nothing: the next one to load the store does that.
        """
        session.log.note(f"ended: {reason}")
        if not self._closing:
            ended = self._history.end(session, reason, at)
            self.on_end(session, reason)
            self._events.ended(ended)

    def _destroy_in_background(self, session: SandboxSession, reason: str) -> None:
        """Make a session unreachable at once, and end it in the background."""
        self._make_unreachable(session, reason)
        self._ending_of(session, reason).add_done_callback(_log_failure)

    def _destroy_expired(self, session: SandboxSession) -> None:
        """Do that with a session that has reached its deadline; what it has may be kept."""
        at, reason = session.lifetime.deadline, _expired(session)
        keep = self.keep_expired(session, at) if session.ending is None else None
        self._make_unreachable(session, reason, at)
        self._ending_of(session, reason, keep).add_done_callback(_log_failure)

    async def _expire(self, session: SandboxSession) -> None:
        """Let the deadline of a session pass while its code runs.

        Return when its processes have ended, or at once if the ledger lets the code finish.
        """
        session.lifetime.expire(now := self._clock.now())
        self._earliest = now
        session.log.note("reached its deadline, because a fault was armed")
        self._events.publish(session, "ttl")
        if session.lifetime.is_due(now):
            # Not awaited, because it waits until the code has ended.
            self._destroy_expired(session)
            await session.code_ended.wait()

    def pause(self, session: SandboxSession) -> None:
        """Pause a session: it starts no code until it is resumed."""
        session.lifetime.pause(self._clock.now())
        session.log.note("paused")
        self._events.publish(session, "paused")

    def resume(self, session: SandboxSession) -> None:
        """Resume a paused session (U-TTL-PAUSED)."""
        session.lifetime.resume(self._clock.now())
        session.log.note("resumed")
        self._events.publish(session, "resumed")

    def set_ttl(self, session: SandboxSession, ttl: dt.timedelta) -> None:
        """Set the deadline of a session to ``ttl`` from now."""
        session.lifetime.set_ttl(self._clock.now(), ttl)
        self._earliest = min(self._earliest, session.lifetime.deadline)
        session.log.note(f"expires at {session.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ} from now on")
        self._events.publish(session, "ttl")

    def destroy_due(self) -> None:
        """Make due sessions unreachable, and end them in the background (SBX-03)."""
        now = self._clock.now()
        if now < self._earliest:  # to look at 1,000 deadlines took 0.8 ms of every call
            return
        for session in [
            candidate for candidate in self._by_id.values() if candidate.lifetime.is_due(now)
        ]:
            self._destroy_expired(session)
        self._earliest = min((i.lifetime.deadline for i in self._by_id.values()), default=_NEVER)

    async def settle(self) -> None:
        """Destroy the sessions that are due; return when all ending sessions have ended."""
        self.destroy_due()
        if self._ending:
            await asyncio.wait(set(self._ending))
        await self._store.saved()

    async def reap(self) -> None:
        """Destroy the sessions that are due, forever."""
        while True:  # poll, because no timer fires when a frozen clock is moved
            try:
                self.destroy_due()
            except Exception:  # one session that cannot be ended must not keep the rest alive
                _log.exception("The reaper could not destroy a session that was due.")
            await pause(REAPER_INTERVAL_S)

    async def reset(self, reason: str, *, wait: bool = True) -> None:
        """Destroy every session and forget those that ended; return when all have ended.

        With ``wait=False``, return when no session can be reached any more, after about 1 ms.
        The processes take 10 ms more to end, and a test should not wait for that.
        """
        if wait:
            await self._destroy_all(self.living(), reason)
        else:
            for session in self.living():
                self._destroy_in_background(session, reason)
        await self._history.clear()

    async def destroy_of(self, tool_id: str, reason: str) -> None:
        """Destroy every session of a tool; return when all have ended."""
        await self._destroy_all(self.of_tool(tool_id), reason)

    async def _destroy_all(self, sessions: Iterable[SandboxSession], reason: str) -> None:
        await asyncio.gather(*(self.destroy(session, reason) for session in sessions))
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def close(self) -> None:
        """Destroy every session; release sockets and directories."""
        self._closing = True
        await self._destroy_all(self.living(), "the double stopped")
        await self.placement.close()


def _expired(session: SandboxSession) -> str:
    return f"{EXPIRED_AT} {session.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ}"


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("A session could not be ended.", exc_info=task.exception())
