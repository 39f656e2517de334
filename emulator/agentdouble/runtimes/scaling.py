"""How many instances of a runtime there are, and which instance a request gets.

A request gets its instance in one step of the loop. The requests that wait for an instance are in
one queue. Every change that may free an instance ends in one function, which awaits nothing: so no
lock is needed, and two callers cannot get one place. Starts and ends are tasks of the pool, not of
the request that caused them, so a client that disconnects leaves nothing half done.

The instance with the fewest requests gets the next one, and the oldest among equals, so that
surplus instances become idle. Instances of replaced versions do not count towards
``max_instances``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from agentdouble.errors import HostingError, RuntimeBusyError, RuntimeEndedError, RuntimeStartError
from agentdouble.runtimes.definition import Version, Versions
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.pool import Pool

_FIRST_S = 0.1
_LONGEST_S = 10.0
_TRIES = 3
SESSIONS_KEPT = 10_000
_SESSION_LENGTH = (
    512  # characters that are compared; longer ids with the same beginning share an instance
)


class Caller:
    """A request that waits; ``given`` has the instance, or the error if there is none."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.given: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()


class Queue:
    """The waiting callers in the order of their arrival."""

    def __init__(self) -> None:
        self._callers: dict[Caller, None] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def __iter__(self) -> Iterator[Caller]:
        return iter(tuple(self._callers))

    def join(self, session: str | None) -> Caller:
        """Return a new caller, the last in the queue."""
        caller = Caller(session)
        self._callers[caller] = None
        return caller

    def leave(self, caller: Caller) -> Instance | None:
        """Remove a caller that waits no longer; return the instance that it has got, if any."""
        self._callers.pop(caller, None)
        given = caller.given
        if not given.done():
            given.cancel()
            return None
        return None if given.exception() else given.result()

    def serve(
        self, has_room: Callable[[], bool], pick: Callable[[Caller], Instance | None]
    ) -> None:
        """Give each caller the instance that ``pick`` returns, while any instance has room."""
        for caller in self:
            if not has_room():
                return
            instance = pick(caller)
            if instance is not None:
                instance.in_flight += 1
                del self._callers[caller]
                caller.given.set_result(instance)

    def fail(self, error: HostingError) -> None:
        """Fail every caller with an error."""
        for caller in self:
            caller.given.set_exception(error)
        self._callers.clear()


class Backoff:
    """Doubles the pause before the next start with each failure in a row, on the loop's clock."""

    def __init__(self) -> None:
        self.failures = 0
        self.proven = False  # an instance was ready once, so another try may succeed
        self._until = 0.0

    @property
    def hopeless(self) -> bool:
        """Whether callers should not wait for the next start, because starts fail too often."""
        # A program that has never been ready is a mistake, and waiting would hide it.
        # A program that was ready once gets two more tries.
        return not self.proven or self.failures >= _TRIES

    def failed(self, now: float) -> None:
        """Note at ``now`` that a start failed, or that an instance ended without serving."""
        self.failures += 1
        self._until = now + min(_LONGEST_S, _FIRST_S * 2.0 ** min(self.failures - 1, 20))

    def started(self) -> None:
        """Note that an instance became ready."""
        self.proven = True

    def served(self) -> None:
        """Note that an instance has served a request."""
        self.failures = 0
        self._until = 0.0

    def remaining_s(self, now: float) -> float:
        """Return how long to wait before the next try."""
        return max(0.0, self._until - now)


class Sessions:
    """The instances of sessions, limited in number: the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._instances: OrderedDict[str, Instance] = OrderedDict()

    def find(self, session: str | None) -> Instance | None:
        """Return the instance of a session, if it has one that takes requests."""
        if session is None:
            return None
        instance = self._instances.get(session[:_SESSION_LENGTH])
        if instance is None or instance.state != "ready" or not instance.alive:
            return None
        return instance

    def keep(self, session: str | None, instance: Instance) -> None:
        """Remember that a session's requests go to an instance."""
        if session is None:
            return
        self._instances[session[:_SESSION_LENGTH]] = instance
        self._instances.move_to_end(session[:_SESSION_LENGTH])
        if len(self._instances) > SESSIONS_KEPT:
            self._instances.popitem(last=False)

    def forget(self, instance: Instance) -> None:
        """Forget an instance that takes no requests any more."""
        for session in [one for one, kept in self._instances.items() if kept is instance]:
            del self._instances[session]


_RETRY_AFTER_S = 1
_ON_PURPOSE = ("idle", "replaced", "asked")  # ends that are no failures


class Scaler:
    """Assigns requests to instances, first come, first served; starts and ends instances as needed.

    Every change that may free an instance ends in ``_dispatch()``. There is no lock, because no
    other task of the loop runs between two awaits.
    """

    def __init__(self, versions: Versions, pool: Pool) -> None:
        self._name = versions.in_force.definition.name
        self._versions = versions
        self.pool = pool
        pool.watcher = self
        self.deploying: Version | None = None
        self.trouble: RuntimeStartError | None = None  # why the latest start failed, if it did
        self.undeployed: RuntimeStartError | None = None  # why the latest deployment failed
        self.settled = asyncio.Event()  # set while no deployment is under way
        self.settled.set()
        self.ended_because = ""
        self._kept_up = False
        self._queue = Queue()
        self._sessions = Sessions()
        self._backoff = Backoff()
        self._again: asyncio.TimerHandle | None = None

    def ensure_min_instances(self) -> None:
        """Keep at least ``min_instances`` from now on, even without a request."""
        self._kept_up = True
        self._dispatch()

    @asynccontextmanager
    async def lease(self, session: str | None) -> AsyncIterator[Instance]:
        """Lend an instance to one request; raise a HostingError if none can be had."""
        instance = await self._given(session)
        try:
            yield instance
            if instance.alive and not instance.ended_because:
                instance.served += 1
                self._backoff.served()
        finally:
            self.pool.release(instance)
            self._dispatch()

    def keep(self, session: str, instance: Instance) -> None:
        """Route the requests of a session to an instance."""
        self._sessions.keep(session, instance)

    def deploy(self, version: Version) -> None:
        """Bring a version into force as soon as an instance of it is ready, or if none serves."""
        self.pool.stop_starting("replaced", except_for=self._versions.in_force)
        self.deploying = self.undeployed = None
        self.settled.set()
        if version is self._versions.in_force:
            return
        if self.pool.ready(self._versions.in_force):
            self.deploying = version
            self.settled.clear()
            self.pool.start(version, cold=False)
        else:
            self._switch(version)

    def end_idle(self, now: dt.datetime, idle: dt.timedelta) -> None:
        """End the instances that were idle that long, except the least number of instances."""
        ready = self.pool.ready(self._versions.in_force)
        since = now - idle
        due = [one for one in ready if not one.in_flight and one.idle_since <= since]
        due.sort(key=lambda one: one.idle_since)
        surplus = len(ready) - self._versions.in_force.definition.scaling.min_instances
        for instance in due[: max(0, surplus)]:
            self.pool.end(instance, "idle")

    @property
    def in_flight(self) -> int:
        """How many requests have an instance."""
        return sum(instance.in_flight for instance in self.pool.living)

    @property
    def proven(self) -> bool:
        """Whether an instance of the version in force has ever been ready."""
        return self._backoff.proven

    def turn_away(self, reason: str) -> None:
        """Give no request an instance from now on; requests that have one keep it."""
        self.ended_because = self.ended_because or reason
        self._queue.fail(RuntimeEndedError(self._name, self.ended_because))
        self.settled.set()
        if self._again is not None:
            self._again.cancel()

    async def close(self, reason: str) -> None:
        """Turn every request away and end every instance; return when nothing is left."""
        self.turn_away(reason)
        await self.pool.close("asked")

    def on_ready(self, instance: Instance) -> None:
        """Give it to waiting requests; an instance of a new version brings that into force."""
        if self.deploying is not None and instance.version == self.deploying.number:
            self._switch(self.deploying)
        self.trouble = None
        self._backoff.started()
        self._dispatch()

    def on_unstarted(self, instance: Instance, error: RuntimeStartError) -> None:
        """Try again later; if a new version failed, give it up and keep the version in force."""
        if self.deploying is not None and instance.version == self.deploying.number:
            self.undeployed, self.deploying = error, None
            self.settled.set()
            return
        self.trouble = error
        self._backoff.failed(_now())
        version = self._versions.in_force
        others = self.pool.ready(version) or self.pool.starting(version)
        if self._backoff.hopeless and not others:
            self._queue.fail(error)
        self._dispatch()

    def on_ended(self, instance: Instance) -> None:
        """Forget the instance, and replace it if it is still needed."""
        self._sessions.forget(instance)
        if instance.ended_because not in _ON_PURPOSE and not instance.served:
            self._backoff.failed(_now())
        self._dispatch()

    async def _given(self, session: str | None) -> Instance:
        limit = self._versions.in_force.definition.scaling.queue_limit
        if self.ended_because:
            raise RuntimeEndedError(self._name, self.ended_because)
        if len(self._queue) >= limit:
            raise self._busy(f"{limit} requests wait for an instance already")
        caller = self._queue.join(session)
        self._dispatch()
        try:
            if not caller.given.done():
                await self._patience(caller)
            return caller.given.result()
        except HostingError as error:
            raise error.with_traceback(None) from None  # several callers may get the same error
        except BaseException:
            instance = self._queue.leave(caller)
            if instance is not None:  # the caller left in the step that gave it
                self.pool.release(instance)
                self._dispatch()
            raise

    async def _patience(self, caller: Caller) -> None:
        """Wait for a caller's instance until the timeout, or longer if an instance is starting."""
        patience_s = self._versions.in_force.definition.scaling.queue_timeout_s
        while not (await asyncio.wait({caller.given}, timeout=patience_s))[0]:
            if self.pool.starting(self._versions.in_force):
                continue
            self._queue.leave(caller)
            raise self.trouble or self._busy(f"none of its instances was free in {patience_s:g} s")

    def _busy(self, reason: str) -> RuntimeBusyError:
        return RuntimeBusyError(self._name, reason, _RETRY_AFTER_S)

    def _switch(self, version: Version) -> None:
        """Bring a version into force; end other versions' instances after their requests."""
        self.deploying = self.trouble = None
        self.settled.set()
        self._backoff = Backoff()
        self._versions.bring_in_force(version)
        self.pool.stop_starting("replaced", except_for=version)
        for instance in self.pool.living:
            if instance.version != version.number:
                self.pool.retire(instance, "replaced")
        self._dispatch()

    def _dispatch(self) -> None:
        if self.ended_because:
            return
        if self._queue:
            self._queue.serve(self._has_room, self._pick)
        self._scale()

    def _has_room(self) -> bool:
        return any(one.has_room for one in self.pool.ready(self._versions.in_force))

    def _pick(self, caller: Caller) -> Instance | None:
        """Return the instance of the caller's session, else the one with the fewest requests."""
        stuck = self._sessions.find(caller.session)
        if stuck is not None:
            return stuck if stuck.has_room else None
        roomy = [one for one in self.pool.ready(self._versions.in_force) if one.has_room]
        if not roomy:
            return None
        chosen = min(roomy, key=lambda one: one.in_flight)
        self._sessions.keep(caller.session, chosen)
        return chosen

    def _scale(self) -> None:
        """Start the missing instances; after a failure one at a time, and only when it is due."""
        version, waiting = self._versions.in_force, self._waiting()
        starting = len(self.pool.starting(version))
        missing = self._wanted(waiting) - len(self.pool.ready(version)) - starting
        if self._backoff.failures:
            missing = min(missing, 1 - starting)
        if missing <= 0:
            return
        pause_s = self._backoff.remaining_s(_now())
        if pause_s:
            self._look_again_in(pause_s)
            return
        for _ in range(missing):
            self.pool.start(version, cold=waiting > 0)

    def _waiting(self) -> int:
        """Return how many callers a new instance would help: those without a session's instance."""
        return sum(self._sessions.find(caller.session) is None for caller in self._queue)

    def _wanted(self, waiting: int) -> int:
        version = self._versions.in_force
        scaling = version.definition.scaling
        least = scaling.min_instances if self._kept_up else 0
        for_these = -(-waiting // scaling.max_concurrency)
        needed = len(self.pool.ready(version)) + for_these
        return max(least, min(scaling.max_instances, needed))

    def _look_again_in(self, pause_s: float) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = asyncio.get_running_loop().call_later(pause_s, self._dispatch)


def _now() -> float:
    return asyncio.get_running_loop().time()
