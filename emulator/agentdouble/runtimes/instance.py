"""One instance of a runtime: a process with an address, from its start to its end."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Literal

from agentdouble.errors import RuntimeStartError
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.readiness import Readiness, free_port
from agentdouble.runtimes.streams import Process

Launch = Callable[[Definition, int, InstanceLog], Awaitable[Process]]

State = Literal["starting", "ready", "draining", "ended"]


class Instance:
    """A process that serves requests; ``in_flight`` counts the requests that it has now.

    ``version`` is the number of the version that it runs. ``created_at`` and ``idle_since`` are
    times of the double's clock. ``served`` counts finished requests, and ``log`` has its output.
    The pool sets ``state``, and the reason of an end in ``ended_because``. ``failed()`` calls
    ``on_failed``.
    """

    def __init__(
        self,
        name: str,
        definition: Definition,
        launch: Launch,
        log: InstanceLog,
        created_at: dt.datetime,
        version: int = 1,
    ) -> None:
        self.name = name
        self.definition = definition
        self.version = version
        self.created_at = self.idle_since = created_at
        self.port = 0  # until it is started
        self.state: State = "starting"
        self.ended_because = ""
        self.in_flight = 0
        self.served = 0
        self.log = log
        self.on_failed: Callable[[], None] = lambda: None
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
    def has_room(self) -> bool:
        """Whether the instance can be given another request."""
        room = self.in_flight < self.definition.scaling.max_concurrency
        return room and self.state == "ready" and self.alive

    def failed(self) -> None:
        """Report that it could not be connected to: it gets no other request, and is ended."""
        self.on_failed()

    async def start(self) -> None:
        """Return when it is ready for requests; raise RuntimeStartError after a clean-up."""
        with ExitStack() as until_it_listens:
            try:
                self.port = until_it_listens.enter_context(free_port())
            except OSError as error:  # no port or descriptor is left
                raise RuntimeStartError(self.definition.name, str(error)) from error
            await self._get_ready()

    async def _get_ready(self) -> None:
        definition = self.definition
        self._process = await self._launched()
        readiness = Readiness(self._process, self.port, self.log)
        patience_s = definition.scaling.start_timeout_s
        try:
            await asyncio.wait_for(readiness.wait(), patience_s)
        except asyncio.TimeoutError:
            seen = await readiness.why_not()
            why = f"it was not ready after {patience_s:g} s, its start_timeout_s: {seen}"
            self.log.note(why)
            await self.end()
            raise RuntimeStartError(definition.name, why) from None
        except BaseException:
            await self.end()
            raise
        if not self.alive:
            raise RuntimeStartError(definition.name, await readiness.how_it_ended())

    async def _launched(self) -> Process:
        """Launch the process; if the start is cancelled, finish the launch and end the process."""
        launching = asyncio.ensure_future(self._launch(self.definition, self.port, self.log))
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            await asyncio.wait({launching})
            if launching.exception() is None:
                await launching.result().end(self.definition.scaling.stop_timeout_s)
            raise

    async def end(self) -> None:
        """End its processes; return when they have ended."""
        if self._process is not None:
            await self._process.end(self.definition.scaling.stop_timeout_s)

    def note_end(self) -> None:
        """Write to its log why and how it has ended."""
        if self._process is not None and self._process.exited.done():
            self.log.note(f"{self.ended_because}: its process {self._process.manner}")

    async def kill(self) -> None:
        """Kill its processes at once; return when they have ended."""
        if self._process is not None:
            await self._process.end(0)
