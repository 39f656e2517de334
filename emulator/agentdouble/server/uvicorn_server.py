"""uvicorn's server, with a start and a stop that suit a double."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from agentdouble.server.sockets import BACKLOG

ACCEPTED_AT_ONCE = 64  # connections in a step of the loop, as asyncio takes its backlog
TICK_S = 1
QUIET_S = 1  # seconds after which a stop is logged
CANCELLED_S = 1  # how long to wait for cancelled requests

_log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn's server that reports when it has started and stops on request, without polling.

    uvicorn checks ten times a second whether it should stop, and then waits a tenth of a second
    for its connections to close. That costs 0.2 s for every double that a test starts.
    """

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell_started = started
        self._tell_stopping = stopping
        self._wake: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does; let the system's queue hold connections not accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            with contextlib.suppress(OSError):  # the startup failed, and the socket is closed
                listener.listen(BACKLOG)

    def exit(self) -> None:
        """Stop serving; may be called from any thread, at any time, more than once."""
        self.should_exit = True
        self._wake()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving because of a signal."""
        super().handle_exit(sig, frame)
        self._wake()

    async def main_loop(self) -> None:
        """Serve until the stop is requested; uvicorn's tick renews the header Date meanwhile."""
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has stopped
                loop.call_soon_threadsafe(stopping.set)

        self._wake = wake  # before the first tick, which sees earlier calls of exit()
        self._tell_started()
        while not await self.on_tick(0):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopping.wait(), TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop as uvicorn does, but without its pause: an idle connection closes in the next step.

        It reports the stop before it waits for running requests.
        """
        self._tell_stopping()
        await self._accept_no_more()
        for closing in (*self.servers, *(sockets or ())):
            closing.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        await self._let_answers_end()
        await self.lifespan.shutdown()

    async def _let_answers_end(self) -> None:
        """Wait for running requests for the grace period, then cancel them."""
        grace = self.config.timeout_graceful_shutdown or 0
        await self._wait(min(QUIET_S, grace))
        rest, count = grace - QUIET_S, len(self.server_state.tasks)
        if count and rest > 0 and not self.force_exit:
            requests = "a request that is" if count == 1 else f"{count} requests that are"
            _log.warning("Stopping: waits up to %g s more for %s being answered.", rest, requests)
            await self._wait(rest)
        pending = set(self.server_state.tasks)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=CANCELLED_S)

    async def _wait(self, at_most_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wait_tasks_to_complete(), at_most_s)

    async def _accept_no_more(self) -> None:
        """Take the accepted connections into the server, and accept no others.

        If a connection is accepted in the loop's step just before its server closes, asyncio drops
        it without closing it, because the new transport can no longer be attached.
        """
        loop = asyncio.get_running_loop()
        if not isinstance(loop, asyncio.SelectorEventLoop):  # uvloop has no such gap
            return
        for listener in (sock for server in self.servers for sock in server.sockets):
            loop.remove_reader(listener.fileno())
        for _ in range(2):  # one step makes the transport, the next gives it to the protocol
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop cleanly on SIGINT and SIGTERM, in the main thread.

        uvicorn raises the signal once more afterwards, which would end the process before the
        caller has cleaned up.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
