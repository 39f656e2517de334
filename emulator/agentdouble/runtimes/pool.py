"""The instances of a runtime, each kept from its start until nothing of it is left."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from typing import Protocol

from agentdouble.clock import Clock
from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.definition import Version
from agentdouble.runtimes.instance import Instance, Launch
from agentdouble.runtimes.logs import RuntimeLogs
from agentdouble.runtimes.monitoring import Monitor

_log = logging.getLogger(__name__)


class ObservedClock:
    """A clock that shows a move only after the move has been handled.

    A client may move the clock as soon as it has its answer, before the loop has released the
    instance that answered. The instance's idle time must still begin before the move.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._looked_at = clock.offset

    def now(self) -> dt.datetime:
        """Return the platform's time, without moves that have not been handled yet."""
        return self._clock.unmoved() + self._offset

    def catch_up(self) -> None:
        """Include every move so far."""
        self._offset = self._clock.offset

    def look(self) -> None:
        """Include moves that were there at the last look, because nothing else handles them."""
        if self._clock.offset == self._looked_at:
            self.catch_up()
        self._looked_at = self._clock.offset


class Watcher(Protocol):
    """The owner of a pool: it decides how many instances there are, and is notified of changes."""

    def on_ready(self, instance: Instance) -> None:
        """Handle an instance that takes requests from now on."""

    def on_unstarted(self, instance: Instance, error: RuntimeStartError) -> None:
        """Handle an instance that did not become ready."""

    def on_ended(self, instance: Instance) -> None:
        """Handle an instance that has begun to end; ``ended_because`` is the reason."""


class Pool:
    """Starts and ends instances; it ends everything it started, even if the client has left."""

    def __init__(
        self, name: str, clock: ObservedClock, monitor: Monitor, logs: RuntimeLogs, launch: Launch
    ) -> None:
        self._name = name
        self._clock = clock
        self._monitor = monitor
        self._logs = logs
        self._launch = launch
        self.watcher: Watcher
        self._made = 0
        self._warned = ""  # the last reported error; later starts often fail with the same error
        self._living: list[Instance] = []
        self._starting: dict[Instance, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._draining: dict[Instance, asyncio.TimerHandle] = {}

    @property
    def living(self) -> tuple[Instance, ...]:
        """The instances that were ready and have not ended, the oldest first."""
        return tuple(instance for instance in self._living if instance.alive)

    @property
    def begun(self) -> tuple[Instance, ...]:
        """The instances that live or are being started."""
        return (*self.living, *self._starting)

    def starting(self, version: Version) -> tuple[Instance, ...]:
        """Return the instances of a version that are not ready yet."""
        return tuple(one for one in self._starting if one.version == version.number)

    def ready(self, version: Version) -> tuple[Instance, ...]:
        """Return the instances of a version that take requests, the oldest first."""
        number = version.number
        return tuple(i for i in self.living if i.version == number and i.state == "ready")

    def start(self, version: Version, *, cold: bool) -> None:
        """Begin to start an instance of a version; ``cold`` if a request waits for it."""
        self._made += 1
        name = f"{self._name}-{self._made}"
        instance = Instance(
            name,
            version.definition,
            self._launch,
            self._logs.open(name),
            self._clock.now(),
            version.number,
        )
        instance.on_failed = lambda: self.retire(instance, "crashed")
        self._starting[instance] = asyncio.ensure_future(self._start(instance, cold))

    def stop_starting(self, reason: str, except_for: Version | None = None) -> None:
        """Cancel the starts that are under way, except those of one version."""
        for instance, task in list(self._starting.items()):
            if except_for is None or instance.version != except_for.number:
                del self._starting[instance]
                instance.state, instance.ended_because = "ended", reason
                self._keep(task)
                task.cancel()

    def retire(self, instance: Instance, reason: str) -> None:
        """Give an instance no more requests; end it after its last request, or after a timeout."""
        if instance.state != "ready":
            return
        if not instance.in_flight or not instance.alive:
            self.end(instance, reason)
            return
        instance.state, instance.ended_because = "draining", reason
        patience_s = instance.definition.scaling.drain_timeout_s
        loop = asyncio.get_running_loop()
        self._draining[instance] = loop.call_later(patience_s, self.end, instance, reason)

    def release(self, instance: Instance) -> None:
        """Take back an instance from a finished request."""
        instance.in_flight -= 1
        instance.idle_since = self._clock.now()
        if instance.state == "draining" and not instance.in_flight:
            self.end(instance, instance.ended_because)

    def end(self, instance: Instance, reason: str) -> None:
        """Begin to end an instance that was ready, even if it still has requests."""
        if instance not in self._living:
            return
        instance.state, instance.ended_because = "ended", reason
        self._living.remove(instance)
        drained = self._draining.pop(instance, None)
        if drained is not None:
            drained.cancel()
        self._monitor.ended(self._name, reason)
        self._keep(asyncio.ensure_future(_end(instance)))
        self.watcher.on_ended(instance)

    async def settle(self) -> None:
        """Return when every ending instance has ended."""
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def close(self, reason: str) -> None:
        """End every instance; return when nothing of them is left."""
        self.stop_starting(reason)
        for instance in tuple(self._living):
            self.end(instance, reason)
        await self.settle()

    async def _start(self, instance: Instance, cold: bool) -> None:
        begun = time.perf_counter()
        try:
            await instance.start()
        except RuntimeStartError as error:
            self._unstarted(instance, error)
        except Exception as error:
            _log.exception("The instance %s could not be started.", instance.name)
            self._unstarted(instance, RuntimeStartError(self._name, str(error)))
        else:
            await self._started(instance, time.perf_counter() - begun, cold)

    async def _started(self, instance: Instance, duration_s: float, cold: bool) -> None:
        if self._starting.pop(instance, None) is None:  # the start was cancelled in its last step
            await _end(instance)
            return
        instance.state, instance.idle_since = "ready", self._clock.now()
        self._living.append(instance)
        self._warned = ""
        self._monitor.started(self._name, duration_s, cold=cold)
        self.watcher.on_ready(instance)
        instance.exited.add_done_callback(lambda _exited: self.end(instance, "crashed"))

    def _unstarted(self, instance: Instance, error: RuntimeStartError) -> None:
        given_up = self._starting.pop(instance, None) is None
        if given_up:
            return
        instance.state, instance.ended_because = "ended", "unstarted"
        instance.note_end()
        self._monitor.ended(self._name, "unstarted")
        if error.reason != self._warned:  # if no request waits, only the log reports it
            _log.warning("%s", error)
            self._warned = error.reason
        self.watcher.on_unstarted(instance, error)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _end(instance: Instance) -> None:
    try:
        await instance.end()
        instance.note_end()
    except Exception:  # no caller waits for this task alone
        _log.exception("The instance %s could not be ended.", instance.name)
