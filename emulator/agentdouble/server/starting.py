"""Functions that serve an application in the foreground, or in its own thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp

from agentdouble.server.event_loops import run
from agentdouble.server.protocols import LARGEST_WEBSOCKET_MESSAGE, HttpProtocol, WebSocketProtocol
from agentdouble.server.uvicorn_server import ACCEPTED_AT_ONCE, Server

T = TypeVar("T")
Prepare = Callable[[], Coroutine[Any, Any, None]]

GRACE_S = 2
# Clients keep an idle connection 4 to 30 s, httpx and uvicorn 5. A request that is sent at the
# moment when the server closes the connection is lost.
KEPT_S = 75


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
    further: Sequence[socket.socket] = (),
) -> None:
    """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers.

    ``further`` are listeners that ``app`` answers as well. ``prepare`` runs first, in the same
    loop; its errors are raised here. ``stopping`` is called in the loop when the server stops, to
    end answers that would not end by themselves.
    """
    run(_prepared(_server(app, started, tls, stopping), (listener, *further), prepare))


class ServerThread:
    """A server in its own thread that changes nothing else in its process."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        prepare: Prepare = _nothing,
        tls: ssl.SSLContext | None = None,
        stopping: Callable[[], None] = _nothing_to_end,
        further: Sequence[socket.socket] = (),
    ) -> None:
        self._listeners = (listener, *further)
        self._prepare = prepare
        self._up = threading.Event()
        self._error: BaseException | None = None
        self._server = _server(app, self._up.set, tls, stopping)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="agentdouble", daemon=True)

    def start(self) -> None:
        """Start, and return when the server answers; raise the error that prevented the start."""
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
        except SystemExit:  # uvicorn reports a failed startup in this way
            pass
        except BaseException as error:
            self._error = error
        finally:
            if not self._server.started and self._error is None:
                self._error = RuntimeError("The application's startup failed; its log says why.")
            _close(self._listeners)
            self._up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await _prepared(self._server, self._listeners, self._prepare)


async def answer_during(
    work: Coroutine[Any, Any, None],
    app: ASGIApp,
    listeners: Sequence[socket.socket],
    tls: ssl.SSLContext | None,
) -> None:
    """Let an application answer during some work, on listeners that are used afterwards.

    Raises SystemExit if a signal stops it before the work is done.
    """
    server = _server(app, _nothing_to_end, tls, _nothing_to_end)
    serving = server.serve(sockets=[listener.dup() for listener in listeners])
    tasks = answering, working = asyncio.ensure_future(serving), asyncio.ensure_future(work)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise SystemExit(0)
    finally:
        server.exit()
        working.cancel()
        await asyncio.gather(answering, working, return_exceptions=True)
    working.result()


async def _prepared(server: Server, listeners: Sequence[socket.socket], prepare: Prepare) -> None:
    try:
        await prepare()
    except BaseException:
        _close(listeners)
        raise
    await server.serve(sockets=list(listeners))


def _close(listeners: Sequence[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


def _server(
    app: ASGIApp,
    started: Callable[[], None],
    tls: ssl.SSLContext | None,
    stopping: Callable[[], None],
) -> Server:
    config = uvicorn.Config(
        app,
        http=HttpProtocol,
        ws=WebSocketProtocol,
        ws_max_size=LARGEST_WEBSOCKET_MESSAGE,
        ws_per_message_deflate=False,  # it costs more than it saves on one machine
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEPT_S,
        backlog=ACCEPTED_AT_ONCE,
        forwarded_allow_ips="127.0.0.1",  # ignore the environment's FORWARDED_ALLOW_IPS
    )
    config.load()
    config.ssl = tls  # uvicorn itself accepts only files
    return Server(config, started, stopping)
