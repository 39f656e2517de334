from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import resource
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble import Emulator
from agentdouble.server import exhaustion, protocols, starting
from agentdouble.server.protocols import HttpProtocol
from agentdouble.server.sockets import open_socket
from agentdouble.server.starting import ServerThread
from tests.agentdouble.calling import eventually


def app() -> Starlette:
    return Starlette(routes=[Route("/", lambda _request: PlainTextResponse("here"))])


@contextlib.contextmanager
def connected(app: ASGIApp) -> Iterator[socket.socket]:
    """Serve an application and yield a connection to it."""
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(app, listener)
    server.start()
    try:
        with socket.create_connection(listener.getsockname(), timeout=60) as connection:
            yield connection
    finally:
        server.stop()


def test_a_small_answer_is_sent_at_once() -> None:
    """Head and body arrive together."""
    with connected(app()) as connection:
        for _ in range(20):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = connection.recv(65536)

            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\nhere")


def test_a_head_does_not_wait_for_a_late_body() -> None:
    """Pipelined requests are answered in order."""
    received = threading.Event()

    async def late() -> AsyncIterator[str]:
        await asyncio.to_thread(received.wait, 30)
        yield "late"

    routes = [
        Route("/", lambda _request: StreamingResponse(late())),
        Route("/none", lambda _request: Response(status_code=204)),
    ]
    with connected(Starlette(routes=routes)) as connection:
        unknown_route = b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        last = b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + unknown_route + last)
        head = connection.recv(65536)
        received.set()
        rest = b"".join(iter(lambda: connection.recv(65536), b""))

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert rest.startswith(b"4\r\nlate\r\n0\r\n\r\nHTTP/1.1 204 No Content\r\n")
    assert 2 == rest.count(b"204 No Content")
    assert rest.endswith(b"\r\n\r\n")


def test_clients_give_up_idle_connections_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server waits longer, so that no request meets a closing connection."""
    httpx_keeps_s = httpx.Limits().keepalive_expiry
    assert httpx_keeps_s is not None
    assert httpx_keeps_s * 5 < starting.KEPT_S

    monkeypatch.setattr(starting, "KEPT_S", 1)  # also the limit for the first request
    with connected(app()) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert b"".join(iter(lambda: connection.recv(65536), b"")).endswith(b"here")


HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LATE = b"HTTP/1.1 408 "
HALVES = {
    "a method": b"GE",
    "a head": HEAD,
    "the head of a WebSocket": HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "a body": POST + b"Content-Length: 9\r\n\r\nfour",
    "a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n9\r\nfour",
    "the size of a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n1",
    "no last chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n",
}


def until_closed(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


async def reading(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"], ids=["first", "second"])
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_of_a_request_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, half: bytes, before: bytes
) -> None:
    """The client gets a 408, and the application that waits for the body a disconnect."""
    monkeypatch.setattr(protocols, "SLOW_S", 0.01)
    with connected(Starlette(routes=[Route("/", reading, methods=["GET", "POST"])])) as connection:
        connection.sendall(before)
        if before:
            assert connection.recv(65536).endswith(b"\r\n\r\n0")
        connection.sendall(half)

        assert until_closed(connection).startswith(LATE)


def test_a_head_that_comes_drop_by_drop_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time begins with its first byte."""
    monkeypatch.setattr(protocols, "SLOW_S", 0.1)
    with connected(app()) as connection:
        connection.sendall(HEAD)
        connection.settimeout(0.01)
        answer, lines = b"", itertools.count()
        while not answer:
            with contextlib.suppress(TimeoutError):
                connection.sendall(b"X-Line: %d\r\n" % next(lines))
                answer = connection.recv(65536)

    assert answer.startswith(LATE)
    assert next(lines) > 3


def test_a_connection_that_sends_nothing_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "KEPT_S", 0)
    with connected(app()) as connection:
        assert b"" == until_closed(connection)


def test_a_silent_body_after_its_answer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection closes without a second answer."""
    monkeypatch.setattr(protocols, "SLOW_S", 0.01)
    routes = [Route("/", lambda _request: PlainTextResponse("early"), methods=["POST"])]
    with connected(Starlette(routes=routes)) as connection:
        connection.sendall(POST + b"Content-Length: 9\r\n\r\n")
        head = connection.recv(65536)
        with contextlib.suppress(OSError):
            connection.sendall(b"four")
        rest = until_closed(connection)

    assert (head + rest).endswith(b"\r\n\r\nearly")


@pytest.mark.parametrize("why", ["its answer has begun", "it waits for 100", "nobody reads it"])
def test_a_client_that_waits_is_not_slow(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """A silent body is no reason to end the connection then."""
    looks, go = itertools.count(), threading.Event()
    check = HttpProtocol._check_pace

    def counted(self: HttpProtocol) -> None:
        check(self)
        if next(looks) == 3:
            go.set()

    monkeypatch.setattr(protocols, "SLOW_S", 0.01)
    monkeypatch.setattr(HttpProtocol, "_check_pace", counted)
    size = 200_000 if why == "nobody reads it" else 8

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await Starlette()(scope, receive, send)
            return
        head = {"type": "http.response.start", "status": 200, "headers": []}
        if why == "its answer has begun":
            await send(head)
            await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
        else:
            await asyncio.to_thread(go.wait, 30)
            await send(head)
        body = await Request(scope, receive).body()
        await send({"type": "http.response.body", "body": b"read %d" % len(body)})

    with connected(endpoint) as connection:
        expects = b"Expect: 100-continue\r\n" if why == "it waits for 100" else b""
        head = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
        connection.sendall(POST + expects + head + b"x" * (size // 2))
        assert go.wait(30)
        connection.sendall(b"x" * (size - size // 2))
        answer = until_closed(connection)

    assert b"HTTP/1.1 200 OK" in answer
    assert b"read %d" % size in answer


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let this process open nothing inside the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_lack_of_descriptors_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often no connection can be accepted; afterwards all are answered."""
    monkeypatch.setattr(exhaustion, "_teller", exhaustion._Teller())
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.01)
    listener = open_socket("127.0.0.1", 0)
    server = ServerThread(app(), listener)
    server.start()
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        clients = [stack.enter_context(socket.socket()) for _ in range(3)]
        with no_descriptor_left():
            for client in clients:
                client.connect(listener.getsockname())
                client.sendall(HEAD + b"\r\n")
            eventually(lambda: exhaustion._teller._untold, lambda count: count > 200)
        for client in clients:
            client.settimeout(60)
            assert client.recv(65536).endswith(b"here")

    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is None
    assert "Accepting a connection failed: [Errno 24] Too many" in record.getMessage()
    assert "ulimit -n" in record.getMessage()


def answer_to(double: Emulator, request: str) -> str:
    """Send a request and return everything received until the connection closes."""
    host, _, port = double.url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request.encode("latin-1"))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received.decode()


def get(double: Emulator, *heads: str, target: str = "/ping", version: str = "1.1") -> str:
    lines = [f"GET {target} HTTP/{version}", *heads, "Connection: close", "", ""]
    return answer_to(double, "\r\n".join(lines))


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (["Host: localhost", "Host: localhost"], "names 2 hosts: 'localhost', 'localhost'"),
        (["Host: localhost", "Host: evil.example"], "names 2 hosts"),
        ([], "has no Host header"),
        (["Host: someone@localhost"], "'someone@localhost' is not a valid host name"),
        (["Host: localhost:x"], "'localhost:x' is not a valid host name"),
        (["Host: localhost/path"], "'localhost/path' is not a valid host name"),
        (["Host: local host"], "'local host' is not a valid host name"),
        (["Host: localhost:80:80"], "'localhost:80:80' is not a valid host name"),
        (["Host: \xff"], "is not a valid host name"),
    ],
    ids=str,
)
def test_an_invalid_host_is_refused(shared: Emulator, heads: list[str], message: str) -> None:
    """There must be one Host, a name with a port (RFC 9112, 3.2)."""
    answer = get(shared, *heads)

    assert answer.startswith("HTTP/1.1 400 "), answer
    assert '"type":"BadHost"' in answer
    assert message in answer


def test_a_target_that_contradicts_the_host_is_refused(shared: Emulator) -> None:
    """A proxy in front may have checked only the header."""
    answer = get(shared, "Host: localhost", target="http://evil.example/ping")

    assert answer.startswith("HTTP/1.1 400 ")
    assert "names 2 hosts: 'localhost', 'evil.example'" in answer


def test_an_absolute_url_as_target_is_answered(shared: Emulator) -> None:
    """Clients that use the double as a proxy send it."""
    answer = get(shared, "Host: localhost", target="http://localhost/ping")

    assert answer.startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("target", ["/mcp", "localhost:80"])
def test_connect_requests_are_refused(shared: Emulator, target: str) -> None:
    answer = answer_to(shared, f"CONNECT {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert answer.startswith("HTTP/1.1 400 ")
