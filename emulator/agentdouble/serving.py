"""One way to serve an ASGI application: socket, event loop, start, stop.

The only place that opens a listening socket, or has gRPC open one. Two measured facts shape it. A socket made with
``proto=0`` gets no TCP_NODELAY from asyncio and costs 44 ms a request, so ours says
IPPROTO_TCP. And on a stock event loop a frozen clock (freezegun, time-machine 2) freezes every
timer of the server, so the loop keeps a clock of its own that nobody can freeze.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib.util
import logging
import os
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentdouble.errors import AddressInUseError

T = TypeVar("T")
Prepare = Callable[[], Coroutine[Any, Any, None]]

BACKLOG = 2048
GRACE_S = 2
TICK_S = 1
PEER = "agentdouble.peer"  # in the scope: the address at the other end, not what a proxy says
TRANSPORT = "agentdouble.transport"  # in the scope: the connection, for who must end it
LARGEST_WEBSOCKET_MESSAGE = 64 * 1024 * 1024  # bytes

_websocket_log = logging.getLogger("agentdouble.websocket")
_websocket_log.setLevel(logging.WARNING)
# it says so of every connection that is refused with an HTTP status
_websocket_log.addFilter(lambda record: "completing handshake" not in str(record.msg))


def _unfreezable_clock() -> Callable[[], float]:
    # A closure, as freezegun rewrites the attributes of modules; and not time.monotonic, as
    # time-machine before 3 rewrites that function itself, wherever it is kept.
    perf_counter = time.perf_counter

    def read() -> float:
        return perf_counter()

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


def open_unix_socket(path: Path) -> socket.socket:
    """Return a listening Unix socket at a path that nobody else can write to."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def open_grpc(
    host: str, port: int, largest_message: int, interceptors: Sequence[Any]
) -> tuple[Any, int]:
    """Return a grpc.aio server that listens, for the running loop, and its port.

    gRPC opens its sockets by itself and takes none of ours. A message may have
    ``largest_message`` bytes, and none is compressed: a few bytes could become more than that.
    Raises AddressInUseError if the port is taken.
    """
    import grpc.aio

    asyncio.get_running_loop().set_exception_handler(_log_unless_grpc_s)
    options = [
        ("grpc.so_reuseport", 0),  # else a second server would take half of the calls
        ("grpc.max_receive_message_length", largest_message),
        ("grpc.compression_enabled_algorithms_bitset", 1),
    ]
    server = grpc.aio.server(interceptors=interceptors, options=options)
    name = f"[{host}]" if ":" in host else host
    try:
        return server, server.add_insecure_port(f"{name}:{port}")
    except RuntimeError:
        _say_why(host, port)
        raise


def _log_unless_grpc_s(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception, but for two that are nobody's.

    All loops of a process that use grpc.aio share one queue there: each hears of the others'
    events, finds it empty, or belonging to a loop that has been closed meanwhile.
    """
    from_queue = "PollerCompletionQueue" in repr(context.get("handle"))
    if not (from_queue and isinstance(context.get("exception"), (BlockingIOError, RuntimeError))):
        loop.default_exception_handler(context)


def _say_why(host: str, port: int) -> None:
    """Raise what keeps us from listening there, which gRPC does not say."""
    try:
        open_socket(host, port).close()
    except AddressInUseError:
        raise AddressInUseError(host, port, option="--a2a-grpc-port") from None


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL that reaches a listening socket from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared)
    name = f"[{reachable}]" if ":" in reachable else reachable
    return f"{scheme}://{name}:{port}"


def is_closed(scope: Scope) -> bool:
    """Whether the connection of a request is closed, as far as this side knows."""
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    return transport is not None and transport.is_closing()


async def hang_up(scope: Scope, receive: Receive, *, reset: bool = False) -> None:
    """Close the connection of a request when what was sent is out; return when it is closed.

    With ``reset`` the other end is told that it was reset. What the application sends after
    that goes nowhere. Without a socket, where the application is called in this process, it
    raises ConnectionResetError.
    """
    transport: asyncio.Transport | None = scope.get(TRANSPORT)
    if transport is None:
        raise ConnectionResetError("The connection was closed, as a fault says.")
    await asyncio.sleep(0)  # a head that waits for its body goes out
    if reset:
        no_farewell = struct.pack("ii", 1, 0)
        # through a copy: what uvloop gives is not a whole socket
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as copy:
            copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_farewell)
    encrypted = transport.get_extra_info("ssl_object") is not None
    if reset or (encrypted and not transport.get_write_buffer_size()):
        transport.abort()  # over TLS a close would wait for the client's farewell
    else:
        transport.close()
    while (await receive())["type"] != "http.disconnect":
        pass


class _Server(uvicorn.Server):
    """uvicorn's server that tells when it is up and stops when told, without polling.

    uvicorn looks ten times a second whether it should stop, and then rests a tenth of a second
    for its connections to close: 0.2 s for every double that a test starts.
    """

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell_started = started
        self._tell_stopping = stopping
        self._wake: Callable[[], None] = lambda: None

    def exit(self) -> None:
        """Stop serving; from any thread, at any time, more than once."""
        self.should_exit = True
        self._wake()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving, because a signal says so."""
        super().handle_exit(sig, frame)
        self._wake()

    async def main_loop(self) -> None:
        """Serve until told to stop; uvicorn's tick renews the header Date meanwhile."""
        told, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has stopped
                loop.call_soon_threadsafe(told.set)

        self._wake = wake  # before the first tick, which sees what was said earlier
        self._tell_started()
        while not await self.on_tick(0):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(told.wait(), TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop as uvicorn does, without its rest: an idle connection closes in the next step.

        It says that the end has come before it waits for what is being answered.
        """
        self._tell_stopping()
        await self._accept_no_more()
        for closing in (*self.servers, *(sockets or ())):
            closing.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        try:
            grace = self.config.timeout_graceful_shutdown
            await asyncio.wait_for(self._wait_tasks_to_complete(), grace)
        except asyncio.TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        if not self.force_exit:
            await self.lifespan.shutdown()

    async def _accept_no_more(self) -> None:
        """Let the connections that are accepted become the server's, and accept no others.

        asyncio drops, unclosed, a connection that is accepted in the step before its server is
        closed: the new transport cannot be attached any more.
        """
        loop = asyncio.get_running_loop()
        if not isinstance(loop, asyncio.SelectorEventLoop):  # uvloop has no such gap
            return
        for listener in (one for server in self.servers for one in server.sockets):
            loop.remove_reader(listener.fileno())
        for _ in range(2):  # the transport is made in the first step, its protocol told in the next
            await asyncio.sleep(0)

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


class _HeadWithBody:
    """A connection that sends the head of an answer together with the body that follows at once.

    uvicorn writes the two apart, and a send costs more than all the rest of a small answer: 73
    of 200 µs. Where no body follows in the same step of the loop, the head goes alone.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        """Send something; what is first waits for what comes next."""
        if not self._begun:
            self._begun = True
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        head, self._head = self._head, None
        self._transport.write(data if head is None else head + data)

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self._send_head()
        self._transport.close()

    def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol that keeps who is connected, without its access log.

    The setting ``access_log=False`` would take the handlers off the process's uvicorn.access
    logger, which may be somebody else's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope = cast("dict[str, Any]", self.scope)
        scope[PEER] = self.client  # whatever a proxy's header will say of who asks
        scope[TRANSPORT] = self.transport

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the space after its value, which is no part of it (RFC 9110, 5.5).

        httptools leaves it there. MCP compares headers with what the body says, and h11 refuses
        to send such a value onward.
        """
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not None and self.cycle is not before:  # one that is an upgrade has none
            joined = _HeadWithBody(self.transport, self.loop)
            self.cycle.transport = cast("asyncio.Transport", joined)

    def shutdown(self) -> None:
        """Close an idle connection at once.

        Over TLS a close waits for the client's farewell, which one that keeps its connection
        for later does not send: the server would stop seconds late and leave a socket open.
        """
        super().shutdown()
        if self.transport.is_closing() and self.transport.get_extra_info("ssl_object"):
            self.transport.abort()


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol that logs no addresses: a session's has its token in it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.conn.logger = _websocket_log

    # uvicorn 0.35 does not hear that a client is slow: all would wait in memory

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.writable.set()

    async def send(self, message: Any) -> None:
        """Pass on what the application says; the length of a refusal is uvicorn's to tell.

        Before 0.53 it adds one of its own to one that is there, and clients take neither.
        """
        if message["type"] == "websocket.http.response.start":
            kept = [
                (name, value) for name, value in message["headers"] if name != b"content-length"
            ]
            message = {**message, "headers": kept}
        await super().send(message)


def _server(
    app: ASGIApp,
    started: Callable[[], None],
    tls: ssl.SSLContext | None,
    stopping: Callable[[], None],
) -> _Server:
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws=_WebSocketProtocol,
        ws_max_size=LARGEST_WEBSOCKET_MESSAGE,
        ws_per_message_deflate=False,  # it costs more than it saves on one machine
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
        forwarded_allow_ips="127.0.0.1",  # not what the environment's FORWARDED_ALLOW_IPS says
    )
    config.load()
    config.ssl = tls  # uvicorn itself would take files only
    return _Server(config, started, stopping)


async def _nothing() -> None:
    pass


def _nothing_to_end() -> None:
    pass


def serve(
    app: ASGIApp,
    listener: socket.socket,
    started: Callable[[], None],
    prepare: Prepare = _nothing,
    tls: ssl.SSLContext | None = None,
    stopping: Callable[[], None] = _nothing_to_end,
) -> None:
    """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers.

    ``prepare`` runs before, in the same loop; what it raises is raised here. ``stopping`` is
    called there when the end has come, to end answers that would not end by themselves.
    """
    run(_prepared(_server(app, started, tls, stopping), listener, prepare))


async def _prepared(server: _Server, listener: socket.socket, prepare: Prepare) -> None:
    try:
        await prepare()
    except BaseException:
        listener.close()
        raise
    await server.serve(sockets=[listener])


class ServerThread:
    """A server in a thread of its own; it changes nothing of its process."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        prepare: Prepare = _nothing,
        tls: ssl.SSLContext | None = None,
        stopping: Callable[[], None] = _nothing_to_end,
    ) -> None:
        self._listener = listener
        self._prepare = prepare
        self._up = threading.Event()
        self._error: BaseException | None = None
        self._server = _server(app, self._up.set, tls, stopping)
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
        self._server.exit()
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
        await _prepared(self._server, self._listener, self._prepare)
