from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests.agentdouble.calling import http


def app() -> Starlette:
    return Starlette(routes=[Route("/", lambda _request: PlainTextResponse("here"))])


def test_a_thread_serves_until_it_is_stopped() -> None:
    """It answers after start(), and the port is free after stop()."""
    listener = open_socket("127.0.0.1", 0)
    url = address_of(listener)
    server = ServerThread(app(), listener)

    server.start()
    answer = http.get(url).text
    server.stop()

    assert "here" == answer
    with pytest.raises(httpx.ConnectError):
        http.get(url)


def test_a_thread_stops_at_once() -> None:
    """It neither polls nor sleeps before it ends."""

    def took() -> float:
        server = ServerThread(app(), open_socket("127.0.0.1", 0))
        server.start()
        began = time.monotonic()
        server.stop()
        return time.monotonic() - began

    # either would take a tenth of a second, each time
    assert any(took() < 0.1 for _ in range(20))


def test_idle_connections_do_not_delay_stopping() -> None:
    """The server closes them."""
    with httpx.Client() as client:
        with serving_at() as url:
            assert "here" == client.get(url).text

        with pytest.raises(httpx.ConnectError):
            client.get(url)


@contextlib.contextmanager
def serving_at() -> Iterator[str]:
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(app(), listener)
    server.start()
    yield address_of(listener)
    server.stop()


def test_a_startup_failure_is_raised() -> None:
    """start() does not return as if it had succeeded."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    server = ServerThread(Starlette(lifespan=lifespan), open_socket("127.0.0.1", 0))

    with pytest.raises(RuntimeError, match="startup failed"):
        server.start()


def test_blocking_calls_from_inside_the_loop_are_errors() -> None:
    """So are calls before the start."""
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(app(), listener)

    async def nothing() -> None:
        return None

    with pytest.raises(RuntimeError, match="another thread"):
        server.call(nothing())

    listener.close()
