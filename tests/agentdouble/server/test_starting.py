from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import anyio
import freezegun
import httpx
import pytest
import time_machine
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agentdouble.errors import AddressInUseError
from agentdouble.server.event_loops import run
from agentdouble.server.forwarded_prefix import Forwarded
from agentdouble.server.protocols import PEER
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


def test_answers_are_sent_at_once() -> None:
    """Without TCP_NODELAY each request would take 44 ms more."""
    listener = open_socket("127.0.0.1", 0)

    assert socket.IPPROTO_TCP == listener.proto
    listener.close()


def test_a_port_in_use_suggests_the_next_one() -> None:
    """The error has the host and the port."""
    first = open_socket("127.0.0.1", 0)
    port = first.getsockname()[1]

    with pytest.raises(
        AddressInUseError, match=f"Port {port} on 127.0.0.1 .*--port {port + 1}"
    ) as c:
        open_socket("127.0.0.1", port)

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
def test_the_address_reaches_the_socket(bound: str, url: str) -> None:
    """Wildcard addresses are shown as loopback, IPv6 in brackets."""
    if ":" in bound and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    listener = open_socket(bound, 0)

    assert url.format(listener.getsockname()[1]) == address_of(listener)
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
    """Only the wall clock stands still."""

    async def timers() -> bool:
        with frozen():
            before = time.time()
            await asyncio.sleep(0.01)
            return before == time.time()

    assert run(timers())


def test_run_cleans_up() -> None:
    """Running tasks are cancelled, and the loop is closed."""
    closed = []

    async def main() -> asyncio.AbstractEventLoop:
        async def forever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("cancelled")

        task = asyncio.ensure_future(forever())
        await asyncio.wait({task}, timeout=0.01)
        return asyncio.get_running_loop()

    loop = run(main())

    assert ["cancelled"] == closed
    assert loop.is_closed()


def below(*prefixes: str, peer: str = "127.0.0.1") -> tuple[str, str]:
    """Return the root and the path that an application sees."""
    scopes: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scopes.append((scope.get("root_path", ""), scope["path"]))

    headers = [(b"x-forwarded-prefix", prefix.encode()) for prefix in prefixes]
    scope = {"type": "http", "path": "/x", "headers": headers, PEER: (peer, 1)}
    anyio.run(Forwarded(app), scope, None, None)
    [result] = scopes
    return result


def test_an_application_is_mounted_below_the_gateway_prefix() -> None:
    """As in ASGI, the path includes it."""
    assert ("/runtimes/one", "/runtimes/one/x") == below("/runtimes/one")


@pytest.mark.parametrize("prefix", ["", "/", "one", "//evil", "/a b", "/a?b", "https://evil"])
def test_invalid_prefixes_are_ignored(prefix: str) -> None:
    """So are repeated ones and those from another machine."""
    assert ("", "/x") == below(prefix)
    assert ("", "/x") == below("/a", "/b")
    assert ("", "/x") == below("/a", peer="192.0.2.1")
