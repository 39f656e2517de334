"""One way to serve an ASGI application: socket, event loop, start, stop.

The only place that opens a listening socket. Two measured facts shape it. A socket made with
``proto=0`` gets no TCP_NODELAY from asyncio and costs 44 ms a request, so ours says
IPPROTO_TCP. And on a stock event loop a frozen clock (freezegun) freezes every timer of the
server, so the loop keeps a clock of its own that nobody can freeze.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib.util
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agentdouble.errors import AddressInUseError

T = TypeVar("T")

BACKLOG = 2048
GRACE_S = 2


def _unfreezable_clock() -> Callable[[], float]:
    monotonic = time.monotonic  # a closure: freezegun rewrites module attributes, not this

    def read() -> float:
        return monotonic()

    return read


class SteadyLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go on while the process's clocks are frozen."""

    _clock = staticmethod(_unfreezable_clock())

    def time(self) -> float:
        """Return seconds on a monotonic clock that cannot be frozen."""
        return self._clock()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where it is installed, else a loop that survives frozen clocks."""
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return SteadyLoop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop of ours and leave nothing of it behind."""
    loop = new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            _finish(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    with contextlib.suppress(RuntimeError):  # the interpreter exits: it has ended those threads
        loop.run_until_complete(loop.shutdown_default_executor())


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; raise AddressInUseError if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)  # a port that is only bound can be bound once more
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(host, port) from None
        raise
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL that reaches a listening socket from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


class _Server(uvicorn.Server):
    """uvicorn's server that tells when it is up and stops when told, without polling."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    async def main_loop(self) -> None:
        self._tell_started()
        await super().main_loop()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop cleanly on SIGINT and SIGTERM, in the main thread.

        uvicorn raises the signal once more afterwards, which would end the process before
        the caller has cleaned up.
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


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol without its access log.

    The setting ``access_log=False`` would take the handlers off the process's uvicorn.access
    logger, which may be somebody else's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False


def _server(app: ASGIApp, started: Callable[[], None]) -> _Server:
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
        forwarded_allow_ips="127.0.0.1",  # not what the environment's FORWARDED_ALLOW_IPS says
    )
    return _Server(config, started)


def serve(app: ASGIApp, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers."""
    run(_server(app, started).serve(sockets=[listener]))


class ServerThread:
    """A server in a thread of its own; it changes nothing of its process."""

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        self._listener = listener
        self._up = threading.Event()
        self._error: BaseException | None = None
        self._server = _server(app, self._up.set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="agentdouble", daemon=True)

    def start(self) -> None:
        """Return when the server answers; raise what stopped it from starting."""
        self._thread.start()
        self._up.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        """Stop the server and wait for its thread to end."""
        self._server.should_exit = True
        self._thread.join()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's loop and return its result."""
        if self._loop is None or threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("Only another thread can wait for a running server's loop.")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _run(self) -> None:
        try:
            run(self._serve())
        except SystemExit:  # how uvicorn says that the startup failed
            pass
        except BaseException as error:
            self._error = error
        finally:
            if not self._server.started and self._error is None:
                self._error = RuntimeError("The application's startup failed; its log says why.")
            self._listener.close()
            self._up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listener])
