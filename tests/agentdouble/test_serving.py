from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

import freezegun
import httpx
import pytest
import time_machine
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agentdouble import serving
from agentdouble.errors import AddressInUseError
from tests.agentdouble.calling import http


def app() -> Starlette:
    return Starlette(routes=[Route("/", lambda _request: PlainTextResponse("here"))])


def test_a_thread_serves_until_it_is_stopped() -> None:
    """It answers when start() returns, and the port is free when stop() returns."""
    listener = serving.open_socket("127.0.0.1", 0)
    url = serving.address_of(listener)
    server = serving.ServerThread(app(), listener)

    server.start()
    answer = http.get(url).text
    server.stop()

    assert "here" == answer
    with pytest.raises(httpx.ConnectError):
        http.get(url)


def test_a_thread_stops_as_soon_as_it_is_told() -> None:
    """It does not look ten times a second whether it should, nor rest before it ends."""

    def took() -> float:
        server = serving.ServerThread(app(), serving.open_socket("127.0.0.1", 0))
        server.start()
        began = time.monotonic()
        server.stop()
        return time.monotonic() - began

    assert min(took() for _ in range(5)) < 0.05


def test_an_idle_connection_does_not_keep_a_server() -> None:
    """What a client keeps open for later is closed, and the server ends."""
    with httpx.Client() as client:
        with serving_at() as url:
            assert "here" == client.get(url).text

        with pytest.raises(httpx.ConnectError):
            client.get(url)


@contextlib.contextmanager
def serving_at() -> Iterator[str]:
    listener = serving.open_socket("127.0.0.1", 0)
    server = serving.ServerThread(app(), listener)
    server.start()
    yield serving.address_of(listener)
    server.stop()


def test_a_startup_that_fails_is_raised() -> None:
    """start() never returns as if the server were up."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    server = serving.ServerThread(Starlette(lifespan=lifespan), serving.open_socket("127.0.0.1", 0))

    with pytest.raises(RuntimeError, match="startup failed"):
        server.start()


def test_answers_are_sent_at_once() -> None:
    """A socket without TCP_NODELAY would cost 44 ms a request."""
    listener = serving.open_socket("127.0.0.1", 0)

    assert socket.IPPROTO_TCP == listener.proto
    listener.close()


@contextlib.contextmanager
def connected(app: ASGIApp) -> Iterator[socket.socket]:
    """Serve an application; give a connection to it."""
    listener = serving.open_socket("127.0.0.1", 0)
    server = serving.ServerThread(app, listener)
    server.start()
    try:
        with socket.create_connection(listener.getsockname(), timeout=10) as connection:
            yield connection
    finally:
        server.stop()


def test_a_small_answer_is_sent_as_one() -> None:
    """Head and body together: the first thing that arrives is all of it."""
    with connected(app()) as connection:
        for _ in range(20):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = connection.recv(65536)

            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\nhere")


def test_a_head_does_not_wait_for_a_body_that_is_late() -> None:
    """Nor does what has no body; answers to what was asked at once come in order."""
    asked = threading.Event()

    async def late() -> AsyncIterator[str]:
        await asyncio.to_thread(asked.wait, 10)
        yield "late"

    routes = [
        Route("/", lambda _request: StreamingResponse(late())),
        Route("/none", lambda _request: Response(status_code=204)),
    ]
    with connected(Starlette(routes=routes)) as connection:
        none = b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        last = b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + none + last)
        head = connection.recv(65536)
        asked.set()
        rest = b"".join(iter(lambda: connection.recv(65536), b""))

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert rest.startswith(b"4\r\nlate\r\n0\r\n\r\nHTTP/1.1 204 No Content\r\n")
    assert 2 == rest.count(b"204 No Content")
    assert rest.endswith(b"\r\n\r\n")


def test_a_port_in_use_names_the_next_one_to_try() -> None:
    """The error has host and port, and says what to do."""
    first = serving.open_socket("127.0.0.1", 0)
    port = first.getsockname()[1]

    with pytest.raises(
        AddressInUseError, match=f"Port {port} on 127.0.0.1 .*--port {port + 1}"
    ) as c:
        serving.open_socket("127.0.0.1", port)

    first.close()
    assert ("127.0.0.1", port) == (c.value.host, c.value.port)


@pytest.mark.parametrize(
    ("bound", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:{}"),
        ("0.0.0.0", "http://127.0.0.1:{}"),
        ("::1", "http://[::1]:{}"),
        ("::", "http://[::1]:{}"),
    ],
)
def test_the_address_is_one_that_reaches_the_socket(bound: str, url: str) -> None:
    """Every interface is shown as loopback, IPv6 stands in brackets."""
    if ":" in bound and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    listener = serving.open_socket(bound, 0)

    assert url.format(listener.getsockname()[1]) == serving.address_of(listener)
    listener.close()


@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param(lambda: freezegun.freeze_time("2030-01-01"), id="freezegun"),
        pytest.param(lambda: time_machine.travel("2030-01-01", tick=False), id="time-machine"),
    ],
)
def test_timers_run_while_the_clocks_are_frozen(
    frozen: Callable[[], AbstractContextManager[object]],
) -> None:
    """The wall clock stands still, the loop does not."""

    async def timers() -> bool:
        with frozen():
            before = time.time()
            await asyncio.sleep(0.01)
            return before == time.time()

    assert serving.run(timers())


def test_run_leaves_nothing_behind() -> None:
    """What is still running is cancelled, and the loop is closed."""
    left = []

    async def main() -> asyncio.AbstractEventLoop:
        async def forever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                left.append("cancelled")

        task = asyncio.ensure_future(forever())
        await asyncio.wait({task}, timeout=0.01)
        return asyncio.get_running_loop()

    loop = serving.run(main())

    assert ["cancelled"] == left
    assert loop.is_closed()


def test_nobody_waits_for_the_loop_from_inside() -> None:
    """A call that would wait for itself is an error, and so is one before the start."""
    listener = serving.open_socket("127.0.0.1", 0)
    server = serving.ServerThread(app(), listener)

    async def nothing() -> None:
        return None

    with pytest.raises(RuntimeError, match="another thread"):
        server.call(nothing())

    listener.close()
