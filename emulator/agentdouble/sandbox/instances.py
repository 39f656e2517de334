"""Session instances: made on first use, reused, destroyed on time (section 3).

An instance belongs to a tool and a user session. It has a deadline on the platform's clock. The
reaper destroys an instance that is due, unless a request comes first and does it.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.core.threads import pause, run_in_thread
from agentdouble.errors import (
    InstanceEndedError,
    StateError,
    UnknownSessionError,
)
from agentdouble.journal.entries import note_session
from agentdouble.processes.watch import Watch, Watched
from agentdouble.sandbox.ended_instances import (
    EndedInstance,
    EndedInstances,
    SessionEvents,
    ended_instance,
)
from agentdouble.sandbox.instance import Instance, ends_session
from agentdouble.sandbox.lifetime import may_begin_again
from agentdouble.sandbox.output_feed import ExecutionPublisher, OutputFeed
from agentdouble.sandbox.places import Places
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session_process import InstanceKey, SessionLog
from agentdouble.settings import Settings
from agentdouble.state import Store

if TYPE_CHECKING:
    from agentdouble.processes.copies.kernel_snapshot import Snapshot

_log = logging.getLogger(__name__)

REAPER_INTERVAL_S = 0.25
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ENDLESS_S = 10 * 365 * 86_400
_NEVER = dt.datetime.max.replace(tzinfo=dt.timezone.utc)

VariablesOf = Callable[[str], Mapping[str, str]]


def _no_variables(_tool_id: str) -> Mapping[str, str]:
    return _NOTHING


class Instances:
    """The living session instances, and the records of those that have ended.

    ``variables_of`` returns the environment variables of a tool's sessions, and raises
    UnknownToolError if there is no such tool. ``store`` keeps the records. ``places`` says where
    their processes run, by default here. ``on_end`` is called with each instance that has ended.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        *,
        store: Store | None = None,
        variables_of: VariablesOf = _no_variables,
        events: EventBus | None = None,
        places: Places | None = None,
    ) -> None:
        self._clock = clock
        self.settings = settings
        self._store = store or Store()
        self._variables_of = variables_of
        self._closing = False
        self._events = SessionEvents(events or EventBus(), clock)
        self.feed = OutputFeed(plain_tracebacks=settings.plain_tracebacks)
        self.places = places or Places(settings)
        self._living: dict[InstanceKey, Instance] = {}  # oldest first
        self._by_id: dict[str, Instance] = {}
        self._earliest = _NEVER  # no deadline is earlier
        self._history = EndedInstances(self._store)
        self._ending: set[asyncio.Task[None]] = set()
        self.on_end: Callable[[EndedInstance], None] = lambda _ended: None
        self._looking = asyncio.Lock()
        self._watch = Watch()

    def __len__(self) -> int:
        return len(self._living)

    def living(self) -> tuple[Instance, ...]:
        """Return the living instances, oldest first, also those that are due."""
        return tuple(self._living.values())

    def of_tool(self, tool_id: str) -> tuple[Instance, ...]:
        """Return the living instances of a tool, oldest first, also those that are due."""
        return tuple(instance for instance in self.living() if instance.key.tool_id == tool_id)

    def ended(self) -> tuple[EndedInstance, ...]:
        """Return the instances that have ended and are remembered, oldest first."""
        return self._history.all()

    async def load(self) -> None:
        """Load the records of the store; instances that lived then ended with that process."""
        await self._history.load(self._clock.now())

    async def get_or_create(
        self,
        tool_id: str,
        user_session_id: str,
        ttl_s: int | None = None,
        variables: Mapping[str, str] = _NOTHING,
    ) -> Instance:
        """Return the session's instance; make it if there is none (SBX-01, SBX-02).

        ``variables`` are added to those of the tool. They and ``ttl_s`` (seconds) take effect
        only if this call makes the instance (but see U-TTL-REPEATED). Raises
        TooManyInstancesError at the limit, UnknownToolError, and InstanceEndedError if the
        ledger says that an ended session stays ended (U-TTL-AFTER).
        """
        self.destroy_due()
        key = InstanceKey(tool_id, user_session_id)
        instance = self._living.get(key)
        if instance is None:
            ended = self._history.latest(key)
            if ended is not None and not may_begin_again():
                raise InstanceEndedError(user_session_id, ended.dated_reason)
            return await self._create(key, ttl_s, variables)
        return self.use(instance, ttl_s)

    def by_id(self, session_id: str) -> Instance | None:
        """Return the living instance with that SessionId, or None; this does not count as use."""
        return self._by_id.get(session_id)

    async def find(self, tool_id: str, user_session_id: str) -> Instance | None:
        """Return a session's living instance, or None; this does not count as use."""
        self.destroy_due()
        return self._living.get(InstanceKey(tool_id, user_session_id))

    def use(self, instance: Instance, ttl_s: int | None = None) -> Instance:
        """Use a living instance, and move its deadline if the ledger says so."""
        note_session(instance.id)
        ttl = None if ttl_s is None else dt.timedelta(seconds=ttl_s)
        if instance.lifetime.renew(self._clock.now(), ttl):
            self._earliest = min(self._earliest, instance.lifetime.deadline)
            self._events.publish(instance, "ttl")
        return instance

    async def look_up(self, session_id: str, tool_id: str | None = None) -> Instance:
        """Return a tool's living instance with that SessionId; this does not count as use.

        Raises UnknownSessionError, and InstanceEndedError if the instance has ended.
        """
        self.destroy_due()
        instance = self._by_id.get(session_id)
        if instance is not None and tool_id in (None, instance.key.tool_id):
            note_session(instance.id)
            return instance
        ended = self.look_up_ended(session_id, tool_id)
        raise InstanceEndedError(session_id, ended.dated_reason)

    def look_up_ended(self, session_id: str, tool_id: str | None = None) -> EndedInstance:
        """Return an ended instance of that tool; raise UnknownSessionError if there is none."""
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
    ) -> Instance:
        """Make an instance with the state of a snapshot; no instance of ``key`` may live.

        Raises the same errors as ``get_or_create`` and ``Instance.return_to``.
        """
        try:
            instance = await self._create(key, ttl_s, variables)
            await instance.return_to(snapshot)
        except BaseException:
            created = self._living.get(key)
            if created is not None:
                self._destroy_in_background(created, "it could not be created from its snapshot")
            raise
        return instance

    async def create_as(
        self, identity: tuple[str, str], key: InstanceKey, variables: Mapping[str, str]
    ) -> Instance:
        """Make an instance with the id and the token that another double gave it.

        It lives until the other double ends it. Raises the same errors as ``get_or_create``.
        """
        return await self._create(key, _ENDLESS_S, variables, identity)

    async def _create(
        self,
        key: InstanceKey,
        ttl_s: int | None,
        variables: Mapping[str, str],
        identity: tuple[str, str] | None = None,
    ) -> Instance:
        tool_variables = self._variables_of(key.tool_id)
        await self.places.ready()
        if (other := self._living.get(key)) is not None:  # it was made meanwhile
            return self.use(other, ttl_s)
        self.places.check(len(self._living))
        instance = self.places.make(
            key,
            created_at=self._clock.now(),
            ttl=dt.timedelta(seconds=ttl_s or self.settings.session_ttl_s),
            output_limit=self.settings.output_limit,
            on_lost=self._destroy_in_background,
            expire=self._expire,
            on_change=self._on_change,
            events=self._events,
            variables={**tool_variables, **variables},
            log=SessionLog(self._clock),
        )
        if identity is not None:
            instance.id, instance.token = identity
        self._living[key] = self._by_id[instance.id] = instance
        self._earliest = min(self._earliest, instance.lifetime.deadline)
        note_session(instance.id)
        instance.log.note(f"created; expires at {instance.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ}")
        self._events.publish(instance, "begun")
        try:
            await self._history.begin(instance)
        except StateError:
            self._undo_creation(instance)
            raise
        return instance

    def _undo_creation(self, instance: Instance) -> None:
        """End an instance as if it had never been made, because its record was not saved."""
        reason = "its record could not be saved"
        instance.refuse(reason)
        if self._remove(instance):
            self._events.ended(ended_instance(instance, reason, self._clock.now()))
        self._ending_of(instance, reason).add_done_callback(_log_failure)

    async def execute(
        self,
        instance: Instance,
        code: str,
        language: str,
        timeout_s: float,
        cwd: str | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code in an instance; destroy the instance if the result ends its session.

        ``cwd`` and ``publisher`` are as in ``Instance.execute``.
        """
        instance.log.note(f"was asked to run {language}: {code}")
        result = await instance.execute(code, language, timeout_s, cwd, publisher)
        instance.log.note(f"ran execution {result.execution_count}: {result.status}")
        if ends_session(result):
            await self.destroy(instance, result.message.rstrip("."))
        return result.without_colours() if self.settings.plain_tracebacks else result

    async def destroy(self, instance: Instance, reason: str, at: dt.datetime | None = None) -> None:
        """End an instance and remember why; return when its processes have ended (SBX-03).

        ``at`` is the time of the end, if that is not now.
        """
        self._make_unreachable(instance, reason, at)
        await asyncio.shield(self._ending_of(instance, reason))
        with suppress(StateError):  # it has ended, even if this write fails
            await self._store.saved()

    def _make_unreachable(
        self, instance: Instance, reason: str, at: dt.datetime | None = None
    ) -> None:
        """Make an instance unreachable, and remember its end."""
        instance.refuse(reason)
        if self._remove(instance):
            self._remember(instance, reason, at or self._clock.now())

    def _remove(self, instance: Instance) -> bool:
        """Remove an instance from the living ones; return whether it was there."""
        if self._by_id.pop(instance.id, None) is None:
            return False
        del self._living[instance.key]
        self._watch.forget(instance.id)
        return True

    def _ending_of(self, instance: Instance, reason: str) -> asyncio.Task[None]:
        task = asyncio.ensure_future(instance.end(reason))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def _remember(self, instance: Instance, reason: str, at: dt.datetime) -> None:
        """Record when and why an instance ended.

        A double that stops records nothing: the next one to load the store does that.
        """
        instance.log.note(f"ended: {reason}")
        if not self._closing:
            ended = self._history.end(instance, reason, at)
            self.on_end(ended)
            self._events.ended(ended)

    def _destroy_in_background(
        self, instance: Instance, reason: str, at: dt.datetime | None = None
    ) -> None:
        """Make an instance unreachable at once, and end it in the background."""
        self._make_unreachable(instance, reason, at)
        self._ending_of(instance, reason).add_done_callback(_log_failure)

    def _on_change(self, instance: Instance) -> None:
        """Handle an instance that is used, became idle or started a process."""
        if instance.end_reason is None:
            self._watch.mark_active(instance.id)

    async def _expire(self, instance: Instance) -> None:
        """Let the deadline of an instance pass while its code runs.

        Return when its processes have ended, or at once if the ledger lets the code finish.
        """
        instance.lifetime.expire(now := self._clock.now())
        self._earliest = now
        instance.log.note("reached its deadline, because a fault was armed")
        self._events.publish(instance, "ttl")
        if instance.lifetime.is_due(now):
            # Not awaited: it waits for the code.
            self._destroy_in_background(instance, _expired(instance))
            await instance.processes_gone.wait()

    def pause(self, instance: Instance) -> None:
        """Pause an instance: it starts no code until it is resumed."""
        instance.lifetime.pause(self._clock.now())
        instance.log.note("paused")
        self._events.publish(instance, "paused")

    def resume(self, instance: Instance) -> None:
        """Resume a paused instance (U-TTL-PAUSED)."""
        instance.lifetime.resume(self._clock.now())
        instance.log.note("resumed")
        self._events.publish(instance, "resumed")

    def set_ttl(self, instance: Instance, ttl: dt.timedelta) -> None:
        """Set the deadline of an instance to ``ttl`` from now."""
        instance.lifetime.set_ttl(self._clock.now(), ttl)
        self._earliest = min(self._earliest, instance.lifetime.deadline)
        instance.log.note(f"expires at {instance.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ} from now on")
        self._events.publish(instance, "ttl")

    def destroy_due(self) -> None:
        """Make due instances unreachable, and end them in the background (SBX-03)."""
        now = self._clock.now()
        if now < self._earliest:  # thousands of sessions would cost every call a millisecond
            return
        for instance in [
            candidate for candidate in self._living.values() if candidate.lifetime.is_due(now)
        ]:
            self._destroy_in_background(instance, _expired(instance), instance.lifetime.deadline)
        self._earliest = min((i.lifetime.deadline for i in self._living.values()), default=_NEVER)

    async def settle(self) -> None:
        """Destroy the instances that are due; return when all ending instances have ended."""
        self.destroy_due()
        if self._ending:
            await asyncio.wait(set(self._ending))
        await self._store.saved()

    async def reap(self) -> None:
        """Destroy the instances that are due, forever."""
        while True:  # poll, because no timer fires when a frozen clock is moved
            try:
                self.destroy_due()
            except Exception:  # one instance that cannot be ended must not keep the rest alive
                _log.exception("The reaper could not destroy an instance that was due.")
            await pause(REAPER_INTERVAL_S)

    async def watch(self) -> None:
        """Destroy the sessions that use more memory or disk than allowed, forever."""
        while True:
            try:
                await self.destroy_overgrown()
            except Exception:  # the next try may succeed
                _log.exception("The sessions' memory and files could not be measured.")
            await pause(self._watch.pause_s)

    async def destroy_overgrown(self) -> None:
        """Measure every session that may have grown; destroy those over their limit."""
        async with self._looking:
            active = await run_in_thread(self._watch.active) if len(self._living) else set()
            sessions = {i.id: i for i in map(self._by_id.get, active) if i is not None}
            for name in active - sessions.keys():  # it ended during the measurement
                self._watch.forget(name)
            watched = [self._watched(instance) for instance in sessions.values()]
            reasons = await run_in_thread(lambda: self._watch.check(watched)) if watched else {}
            for name, instance in sessions.items():
                instance.used = self._watch.used_by(name)
        await asyncio.gather(
            *(self.destroy(sessions[name], reason) for name, reason in reasons.items())
        )

    def _watched(self, instance: Instance) -> Watched:
        return Watched(
            *(instance.id, instance.pids, self.settings.memory_limit, instance.directories),
            file_limit=self.settings.workspace_limit,
            capped=True,
        )

    async def reset(self, reason: str, *, wait: bool = True) -> None:
        """Destroy every instance and forget those that ended; return when all have ended.

        With ``wait=False``, return when no instance can be reached any more, after about 1 ms.
        The processes take 10 ms more to end, and a test should not wait for that.
        """
        if wait:
            await self._destroy_all(self.living(), reason)
        else:
            for instance in self.living():
                self._destroy_in_background(instance, reason)
        await self._history.clear()

    async def destroy_of(self, tool_id: str, reason: str) -> None:
        """Destroy every instance of a tool; return when all have ended."""
        await self._destroy_all(self.of_tool(tool_id), reason)

    async def _destroy_all(self, instances: Iterable[Instance], reason: str) -> None:
        await asyncio.gather(*(self.destroy(instance, reason) for instance in instances))
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def close(self) -> None:
        """Destroy every instance; release sockets and directories."""
        self._closing = True
        await self._destroy_all(self.living(), "the double stopped")
        await self.places.close()


def _expired(instance: Instance) -> str:
    return f"expired at {instance.lifetime.deadline:%Y-%m-%dT%H:%M:%SZ}"


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("An instance could not be ended.", exc_info=task.exception())
