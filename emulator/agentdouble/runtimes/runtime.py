"""A runtime: its versions, its status, its instances, and which instance a request gets.

A request gets its instance in one step of the loop. Every change that may free an instance ends in
``_dispatch()``, which awaits nothing: so no lock is needed, and two requests cannot get one place.
Starts and ends are tasks of their own, so a client that disconnects leaves nothing half done.

The instance with the fewest requests gets the next one, and the oldest among equals, so that
surplus instances become idle. Instances of replaced versions do not count towards
``max_instances``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from agentdouble.core.clock import Clock
from agentdouble.errors import (
    HostingError,
    RuntimeBusyError,
    RuntimeEndedError,
    RuntimeNameError,
    RuntimeStartError,
    UnknownVersionError,
)
from agentdouble.runtimes.definition import VERSIONS_KEPT, Definition, Version
from agentdouble.runtimes.instance import Launch, RuntimeInstance
from agentdouble.runtimes.logs import RuntimeLogs
from agentdouble.runtimes.monitoring import Monitor

DRAIN_TIMEOUT_S = 60.0  # how long the requests of a replaced instance may take
QUEUE_TIMEOUT_S = 60.0  # how long a request waits for a free instance
QUEUE_LIMIT = 1000  # requests that may wait
SESSIONS_KEPT = 10_000
_SESSION_LENGTH = 512  # characters that are compared
_RETRY_AFTER_S = 1
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0  # after failed starts
_TRIES = 3
_ON_PURPOSE = ("idle", "replaced", "asked")  # ends that are not failures
_STEPS, _STEP_S = 20, 0.001
_log = logging.getLogger(__name__)

Word = Literal["Creating", "Ready", "Updating", "Error", "Releasing", "Deleting", "UnReleased"]


@dataclass(frozen=True)
class Status:
    """A status of the platform; ``message`` gives the reason if there is one."""

    word: Word
    message: str = ""


def _future() -> asyncio.Future[RuntimeInstance]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class _Request:
    """A request that waits; ``instance`` gets its instance, or the error if there is none."""

    session: str | None
    instance: asyncio.Future[RuntimeInstance] = field(default_factory=_future)


class Runtime:
    """A runtime; belongs to one event loop. ``id`` is ``r-...``."""

    def __init__(
        self, id_: str, definition: Definition, clock: Clock, monitor: Monitor, launch: Launch
    ) -> None:
        self.id = id_
        self.name = definition.name
        self.logs = RuntimeLogs(clock)
        self._clock = clock
        self._monitor = monitor
        self._launch = launch
        self.version = Version(1, definition, clock.now())  # the version in force
        self.versions: tuple[Version, ...] = (self.version,)  # those kept, the oldest first
        self._released = 1  # the highest that was ever released
        self._deploying: Version | None = None
        self._under_way: Word = "Updating"
        self._deployed = asyncio.Event()  # set while no deployment is under way
        self._deployed.set()
        self._start_error: RuntimeStartError | None = None  # of the latest start, if it failed
        self._deploy_error: RuntimeStartError | None = None  # of the latest deployment
        self._ended_because = ""
        self._instances: list[RuntimeInstance] = []  # starting, ready or draining, the oldest first
        self._made = 0
        self._starts: dict[RuntimeInstance, asyncio.Task[None]] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._keeps_least = False
        self._waiting: list[_Request] = []
        self._sessions: OrderedDict[str, RuntimeInstance] = OrderedDict()
        self._proven = False  # an instance of the version in force was ready once
        self._failures = 0  # starts that failed in a row
        self._not_before = 0.0  # the next start, on the loop's clock
        self._later: asyncio.TimerHandle | None = None

    @property
    def definition(self) -> Definition:
        """The definition in force, which applies to new requests."""
        return self.version.definition

    @property
    def instances(self) -> tuple[RuntimeInstance, ...]:
        """The instances that were ready and have not ended, of any version, the oldest first."""
        return tuple(
            instance
            for instance in self._instances
            if instance.state != "starting" and instance.alive
        )

    @property
    def begun(self) -> tuple[RuntimeInstance, ...]:
        """The instances, and those that are not ready yet."""
        return tuple(self._instances)

    @property
    def status(self) -> Status:
        """The status in the platform's words, with the reason."""
        latest = self.versions[-1].number
        if self._ended_because:
            return Status("Deleting", self._ended_because)
        if self._deploying is not None:
            return Status(self._under_way)
        if self._deploy_error is not None:
            message = f"Version {self.version.number} stays in force. {self._deploy_error}"
            return Status("Error", message)
        if self._start_error is not None and not self._ready():
            return Status("Error", str(self._start_error))
        if self.definition.min_instances and not self._proven:
            return Status("Creating" if self.version.number == 1 else self._under_way)
        if latest > self._released:
            return Status("UnReleased", f"Version {latest} has not been released.")
        return Status("Ready")

    # Versions

    def find_version(self, number: int | None) -> Version:
        """Return the version with this number, or the newest; raise UnknownVersionError."""
        versions = {version.number: version for version in self.versions}
        if number is None:
            return self.versions[-1]
        if number not in versions:
            raise UnknownVersionError(self.name, number, sorted(versions))
        return versions[number]

    def add(self, definition: Definition, fields: Mapping[str, Any] | None = None) -> Version:
        """Add a version, which is not in force yet; drop the oldest if there are too many.

        Raises RuntimeNameError if the name is another one.
        """
        if definition.name != self.name:
            raise RuntimeNameError(definition.name, f"the runtime is called {self.name!r}")
        number = self.versions[-1].number + 1
        version = Version(number, definition, self._clock.now(), fields or {})
        self.versions = (*self.versions, version)
        if len(self.versions) > VERSIONS_KEPT:
            oldest = next(version for version in self.versions if version is not self.version)
            self.versions = tuple(version for version in self.versions if version is not oldest)
        return version

    def deploy(self, version: Version, word: Word = "Releasing") -> None:
        """Bring a version into force as soon as an instance of it is ready, or if none serves.

        The runtime's status is ``word`` meanwhile.
        """
        self._under_way = word
        self._deploying = self._deploy_error = None
        self._stop_starting(self.version)
        self._deployed.set()
        if version is self.version:
            return
        if self._ready():
            self._deploying = version
            self._deployed.clear()
            self._start(version, cold=False)
        else:
            self._switch(version)

    async def deployed(self) -> None:
        """Return when no deployment is under way; raise the error if the latest one failed."""
        await self._deployed.wait()
        if self._deploy_error is not None:
            raise self._deploy_error.with_traceback(None)

    def restore(self, versions: Sequence[Version], in_force: int) -> None:
        """Restore the versions that the runtime had before the double was restarted."""
        self.versions = tuple(versions)
        self.version = self.find_version(in_force)
        self._released = max(self._released, in_force)

    # Requests

    @asynccontextmanager
    async def lease(self, session: str | None = None) -> AsyncIterator[RuntimeInstance]:
        """Lend an instance to one request; start one if need be.

        Requests of one ``session`` get the same instance while it lives and takes requests.
        Raises RuntimeStartError, RuntimeBusyError and RuntimeEndedError.
        """
        instance = await self._next(session and session[:_SESSION_LENGTH])
        instance.idle_since = self._clock.now()
        try:
            yield instance
            if instance.alive and not instance.ended_because:
                instance.served += 1
                self._failures, self._not_before = 0, 0.0
        finally:
            self._release(instance)

    def keep(self, session: str | None, instance: RuntimeInstance) -> None:
        """Route the requests of a session to an instance."""
        if session is not None:
            self._sessions[session[:_SESSION_LENGTH]] = instance
            self._sessions.move_to_end(session[:_SESSION_LENGTH])
            if len(self._sessions) > SESSIONS_KEPT:
                self._sessions.popitem(last=False)

    async def _next(self, session: str | None) -> RuntimeInstance:
        if self._ended_because:
            raise RuntimeEndedError(self.name, self._ended_because)
        if len(self._waiting) >= QUEUE_LIMIT:
            raise self._busy(f"{QUEUE_LIMIT} requests wait for an instance already")
        request = _Request(session)
        self._waiting.append(request)
        self._dispatch()
        try:
            while not request.instance.done():
                await asyncio.wait({request.instance}, timeout=QUEUE_TIMEOUT_S)
                if not request.instance.done() and not self._starting(self.version):
                    reason = f"none of its instances was free in {QUEUE_TIMEOUT_S:g} s"
                    raise self._start_error or self._busy(reason)
            return request.instance.result()
        except HostingError as error:
            self._withdraw(request)
            raise error.with_traceback(None) from None  # several requests may get the same error
        except BaseException:
            self._withdraw(request)
            raise

    def _withdraw(self, request: _Request) -> None:
        """Remove a request that waits no longer, and free the instance that it may have got."""
        if request in self._waiting:
            self._waiting.remove(request)
        elif request.instance.exception() is None:
            self._release(request.instance.result())

    def _release(self, instance: RuntimeInstance) -> None:
        instance.in_flight -= 1
        if instance.state == "draining" and not instance.in_flight:
            self.end(instance, instance.ended_because)
        self._dispatch()

    def _busy(self, reason: str) -> RuntimeBusyError:
        return RuntimeBusyError(self.name, reason, _RETRY_AFTER_S)

    def _dispatch(self) -> None:
        """Give waiting requests the instances that have room, and start those that are missing."""
        if self._ended_because:
            return
        for request in tuple(self._waiting):
            if not any(instance.has_room for instance in self._ready()):
                break
            instance = self._pick(request.session)
            if instance is not None:
                self._waiting.remove(request)
                instance.in_flight += 1
                request.instance.set_result(instance)
        self._scale()

    def _pick(self, session: str | None) -> RuntimeInstance | None:
        """Return the instance of a session, else the one with the fewest requests."""
        bound = self._bound(session)
        if bound is not None:
            return bound if bound.has_room else None
        roomy = [instance for instance in self._ready() if instance.has_room]
        chosen = min(roomy, key=lambda instance: instance.in_flight, default=None)
        if chosen is not None:
            self.keep(session, chosen)
        return chosen

    def _bound(self, session: str | None) -> RuntimeInstance | None:
        instance = self._sessions.get(session) if session is not None else None
        return instance if instance is not None and instance.ready else None

    def _scale(self) -> None:
        """Start the missing instances; after a failure one at a time, and only when it is due."""
        definition, starting = self.definition, len(self._starting(self.version))
        waiting = sum(self._bound(request.session) is None for request in self._waiting)
        ready = len(self._ready())
        target = min(definition.max_instances, ready + -(-waiting // definition.max_concurrency))
        if self._keeps_least:
            target = max(target, definition.min_instances)
        missing = target - ready - starting
        if self._failures:
            missing = min(missing, 1 - starting)
        if missing <= 0:
            return
        loop = asyncio.get_running_loop()
        if self._not_before > loop.time():
            if self._later is not None:
                self._later.cancel()
            self._later = loop.call_at(self._not_before, self._dispatch)
            return
        for _ in range(missing):
            self._start(self.version, cold=waiting > 0)

    # Instances

    def ensure_min_instances(self) -> None:
        """Keep at least ``min_instances`` from now on, even without a request."""
        self._keeps_least = True
        self._dispatch()

    def end_idle(self, idle_s: float) -> None:
        """End the instances that have been idle for as long as the definition says, or ``idle_s``.

        The least number of instances stays.
        """
        definition, ready = self.definition, self._ready()
        idle = dt.timedelta(seconds=definition.idle_s or idle_s)
        since = self._clock.now() - idle
        due = [
            instance
            for instance in ready
            if not instance.in_flight and instance.idle_since <= since
        ]
        due.sort(key=lambda instance: instance.idle_since)
        for instance in due[: max(0, len(ready) - definition.min_instances)]:
            self.end(instance, "idle")

    async def settle(self, idle_s: float) -> None:
        """Handle a move of the clock; return when every ending instance has ended."""
        for _ in range(_STEPS):  # an answered request must end first
            if not any(instance.in_flight for instance in self._instances):
                break
            await asyncio.sleep(_STEP_S)
        self.end_idle(idle_s)
        if self._ends:
            await asyncio.wait(set(self._ends))

    def retire(self, instance: RuntimeInstance, reason: str) -> None:
        """Give an instance no more requests; end it after its last request, or after a timeout."""
        if instance.state != "ready":
            return
        if not instance.in_flight or not instance.alive:
            self.end(instance, reason)
            return
        instance.state, instance.ended_because = "draining", reason
        asyncio.get_running_loop().call_later(DRAIN_TIMEOUT_S, self.end, instance, reason)

    def end(self, instance: RuntimeInstance, reason: str) -> None:
        """Begin to end an instance, even if it still has requests; replace it if it is needed."""
        if instance not in self._instances:
            return
        self._instances.remove(instance)
        instance.state, instance.ended_because = "ended", reason
        start = self._starts.pop(instance, None)
        if start is not None:
            start.cancel()
            self._note_end(start)
            return
        self._monitor.ended(self.name, reason)
        self._note_end(asyncio.ensure_future(self._end(instance)))
        for session in [key for key, bound in self._sessions.items() if bound is instance]:
            del self._sessions[session]
        if reason not in _ON_PURPOSE and not instance.served:
            self._failed()
        self._dispatch()

    def begin_shutdown(self, reason: str = "the double stops") -> None:
        """Give no request an instance from now on; requests that have one keep it."""
        self._ended_because = self._ended_because or reason
        self._fail_waiting(lambda: RuntimeEndedError(self.name, self._ended_because))
        self._deployed.set()
        if self._later is not None:
            self._later.cancel()

    async def close(self, reason: str = "it was deleted") -> None:
        """Turn every request away and end every instance; return when nothing is left."""
        self.begin_shutdown(reason)
        for instance in self.begun:
            self.end(instance, "asked")
        if self._ends:
            await asyncio.wait(set(self._ends))

    def _ready(self) -> list[RuntimeInstance]:
        """Return the instances of the version in force that take requests, the oldest first."""
        number = self.version.number
        return [
            instance
            for instance in self._instances
            if instance.version == number and instance.ready
        ]

    def _starting(self, version: Version) -> list[RuntimeInstance]:
        return [start for start in self._starts if start.version == version.number]

    def _start(self, version: Version, *, cold: bool) -> None:
        """Begin to start an instance of a version; ``cold`` if a request waits for it."""
        self._made += 1
        name = f"{self.name}-{self._made}"
        log = self.logs.open(name)
        instance = RuntimeInstance(name, version, self._launch, log, self._clock.now())
        self._instances.append(instance)
        self._starts[instance] = asyncio.ensure_future(self._run_start(instance, cold))

    async def _run_start(self, instance: RuntimeInstance, cold: bool) -> None:
        started_at = time.perf_counter()
        try:
            await instance.start()
        except RuntimeStartError as error:
            self._on_unstarted(instance, error)
        except Exception as error:
            _log.exception("The instance %s could not be started.", instance.name)
            self._on_unstarted(instance, RuntimeStartError(self.name, str(error)))
        else:
            if self._starts.pop(instance, None) is None:  # it was cancelled in its last step
                await self._end(instance)
                return
            instance.state, instance.idle_since = "ready", self._clock.now()
            self._monitor.started(self.name, time.perf_counter() - started_at, cold=cold)
            instance.exited.add_done_callback(lambda _exited: self.end(instance, "crashed"))
            if self._deploying is not None and instance.version == self._deploying.number:
                self._switch(self._deploying)
            self._start_error, self._proven = None, True
            self._dispatch()

    def _on_unstarted(self, instance: RuntimeInstance, error: RuntimeStartError) -> None:
        """Try again later; if a new version failed, give it up and keep the version in force."""
        if self._starts.pop(instance, None) is None:  # given up meanwhile
            return
        self._instances.remove(instance)
        instance.state, instance.ended_because = "ended", "unstarted"
        self._monitor.ended(self.name, "unstarted")
        if self._deploying is not None and instance.version == self._deploying.number:
            self._deploy_error, self._deploying = error, None
            self._deployed.set()
            return
        if self._start_error is None or self._start_error.reason != error.reason:
            _log.warning("%s", error)  # if no request waits, only the log reports it
        self._start_error = error
        self._failed()
        # a program that was never ready is a mistake, and waiting would hide it
        hopeless = not self._proven or self._failures >= _TRIES
        if hopeless and not self._ready() and not self._starting(self.version):
            self._fail_waiting(lambda: error)
        self._dispatch()

    def _failed(self) -> None:
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 20))
        self._failures += 1
        self._not_before = asyncio.get_running_loop().time() + pause_s

    def _fail_waiting(self, make_error: Callable[[], HostingError]) -> None:
        for request in self._waiting:
            request.instance.set_exception(make_error())
        self._waiting.clear()

    def _switch(self, version: Version) -> None:
        """Bring a version into force; end other versions' instances after their requests."""
        self._deploying = self._start_error = None
        self._deployed.set()
        self._proven, self._failures, self._not_before = False, 0, 0.0
        self.version = version
        self._released = max(self._released, version.number)
        self._stop_starting(version)
        for instance in self.instances:
            if instance.version != version.number:
                self.retire(instance, "replaced")
        self._dispatch()

    def _stop_starting(self, except_for: Version) -> None:
        for instance in [*self._starts]:
            if instance.version != except_for.number:
                self.end(instance, "replaced")

    async def _end(self, instance: RuntimeInstance) -> None:
        try:
            await instance.end()
        except Exception:  # no caller waits for this task alone
            _log.exception("The instance %s could not be ended.", instance.name)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
