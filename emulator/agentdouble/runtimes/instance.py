"""One instance of a runtime: a process with an address, from its start to its end."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Literal

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.definition import Definition, Version
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.readiness import Readiness, free_port
from agentdouble.runtimes.streams import Process

STOP_TIMEOUT_S = 5.0  # how long an instance may take to end when asked

Launch = Callable[[Definition, int, InstanceLog], Awaitable[Process]]
State = Literal["starting", "ready", "draining", "ended"]


class Instance:
    """A process that serves requests; ``in_flight`` counts the requests that it has now.

    ``version`` is the number of the version that it runs. ``created_at`` and ``idle_since`` are
    times of the double's clock. ``served`` counts finished requests, and ``log`` has its output.
    Its runtime sets ``state``, and the reason of an end in ``ended_because``.
    """

    def __init__(
        self, name: str, version: Version, launch: Launch, log: InstanceLog, created_at: dt.datetime
    ) -> None:
        self.name = name
        self.definition = version.definition
        self.version = version.number
        self.created_at = self.idle_since = created_at
        self.port = 0  # until it is started
        self.state: State = "starting"
        self.ended_because = ""
        self.in_flight = 0
        self.served = 0
        self.log = log
        self._launch = launch
        self._process: Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and not self._process.exited.done()

    @property
    def pid(self) -> int | None:
        """The pid of its first process, or None before it is started."""
        return None if self._process is None else self._process.pid

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done when the process has ended; only for an instance that has been started."""
        assert self._process is not None
        return self._process.exited

    @property
    def ready(self) -> bool:
        """Whether the instance takes requests."""
        return self.state == "ready" and self.alive

    @property
    def has_room(self) -> bool:
        """Whether the instance can be given another request."""
        return self.ready and self.in_flight < self.definition.max_concurrency

    async def start(self) -> None:
        """Return when it is ready for requests; raise RuntimeStartError after a clean-up."""
        definition = self.definition
        try:
            self.port = free_port()
        except OSError as error:  # no port or descriptor is left
            raise RuntimeStartError(definition.name, str(error)) from error
        self._process = await self._launched()
        readiness = Readiness(self._process, self.port, self.log)
        try:
            await readiness.wait(definition.name, definition.start_timeout_s)
        except BaseException:
            self.ended_because = self.ended_because or "unstarted"
            await self.end(0)  # a process that has just been forked does not heed SIGTERM yet
            raise

    async def _launched(self) -> Process:
        """Launch the process; if the start is cancelled, finish the launch and end the process."""
        launching = asyncio.ensure_future(self._launch(self.definition, self.port, self.log))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            await asyncio.wait({launching})
            if launching.exception() is None:
                await launching.result().end(0)
            raise

    async def kill(self) -> None:
        """Kill its processes at once; return when they have ended."""
        if self._process is not None:
            await self._process.end(0)

    async def end(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """End its processes, note in its log why and how, and return when they have ended."""
        if self._process is not None:
            await self._process.end(patience_s)
            if self.ended_because:
                self.log.note(f"{self.ended_because}: its process {self._process.manner}")
