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
    """It answers when start() returns, and the port is free when stop() returns."""
    listener = open_socket("127.0.0.1", 0)
    url = address_of(listener)
    server = ServerThread(app(), listener)

    server.start()
    answer = http.get(url).text
    server.stop()

    assert "here" == answer
    with pytest.raises(httpx.ConnectError):
        http.get(url)


def test_a_thread_stops_as_soon_as_it_is_told() -> None:
    """It does not look ten times a second whether it should, nor rest before it ends."""

    def took() -> float:
        server = ServerThread(app(), open_socket("127.0.0.1", 0))
        server.start()
        began = time.monotonic()
        server.stop()
        return time.monotonic() - began

    # either would take a tenth of a second, each time
    assert any(took() < 0.1 for _ in range(20))


def test_an_idle_connection_does_not_keep_a_server() -> None:
    """What a client keeps open for later is closed, and the server ends."""
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


def test_a_startup_that_fails_is_raised() -> None:
    """start() never returns as if the server were up."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    server = ServerThread(Starlette(lifespan=lifespan), open_socket("127.0.0.1", 0))

    with pytest.raises(RuntimeError, match="startup failed"):
        server.start()


def test_nobody_waits_for_the_loop_from_inside() -> None:
    """A call that would wait for itself is an error, and so is one before the start."""
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(app(), listener)

    async def nothing() -> None:
        return None

    with pytest.raises(RuntimeError, match="another thread"):
        server.call(nothing())

    listener.close()
