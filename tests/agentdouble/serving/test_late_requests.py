"""Clients that begin a request and do not end it."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.serving import room, turn_taking

HEAD = b"POST /invoke HTTP/1.1\r\nHost: localhost\r\nuser_id: u\r\nsession_id: s\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"
LONG_S = 20  # before which nothing ends


@pytest.fixture(params=[False, True], ids=["http", "https"])
def double(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    app = SimpleApp("app")

    @app.entrypoint
    async def entrypoint(payload: object, headers: object) -> object:
        return payload

    with Emulator(app, tls=request.param, pool_size=0) as double:
        yield double


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_taking, "HEAD_S", 0.2)
    monkeypatch.setattr(turn_taking, "PAUSE_S", 0.2)
    monkeypatch.setattr(room, "LOOK_S", 0.05)


@contextlib.contextmanager
def connected(double: Emulator) -> Iterator[socket.socket]:
    url = urlsplit(double.url)
    assert url.port is not None
    with socket.create_connection(("127.0.0.1", url.port), timeout=LONG_S) as plain:
        if url.scheme == "http":
            yield plain
            return
        context = ssl._create_unverified_context()
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            yield connection


def rest(connection: socket.socket) -> bytes:
    """Return everything that comes until the connection is closed."""
    found = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
        while piece := connection.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"G", b"head of the request did not arrive within 0.2 s"),
        (b"GET /ping HTTP/1.1\r\nHost: localhost\r\n", b"head of the request"),
        (HEAD + b"Content-Length: 10\r\n\r\n{", b"body of the request paused for more than 0.2 s"),
        (CHUNKED, b"body of the request paused"),
    ],
    ids=["a letter", "half a head", "half a body", "half a chunk"],
)
@pytest.mark.usefixtures("hurried")
def test_half_a_request_is_ended(
    double: Emulator, caplog: pytest.LogCaptureFixture, sent: bytes, reason: bytes
) -> None:
    """With a reason, also on a connection that was used before; nothing is logged."""
    whole = b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n"

    for before in (b"", whole):
        with connected(double) as connection:
            connection.sendall(before)
            while before and b"pong" not in connection.recv(65536):
                pass
            connection.sendall(sent)
            answer = rest(connection)

        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert reason in answer
    assert not caplog.records


@pytest.mark.usefixtures("hurried")
def test_a_connection_that_begins_nothing_is_closed(double: Emulator) -> None:
    """Without an answer, which nobody asked for."""
    with connected(double) as connection:
        assert b"" == rest(connection)


@pytest.mark.usefixtures("hurried")
def test_a_drip_does_not_prolong_a_head(double: Emulator) -> None:
    """Its time counts from its first byte."""
    with connected(double) as connection, contextlib.suppress(OSError):
        connection.settimeout(0.05)
        connection.sendall(b"GET /ping HTTP/1.1\r\n")
        for number in range(int(LONG_S / 0.05)):
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(65536)
                break
            connection.sendall(b"X-%d: 1\r\n" % number)
        assert answer.startswith(b"HTTP/1.1 408 "), answer


@pytest.mark.usefixtures("hurried")
def test_whoever_waits_for_an_answer_is_not_late(double: Emulator) -> None:
    """Nor who keeps a connection between two requests."""
    with httpx.Client(verify=False, base_url=double.url) as client:
        for _ in range(2):
            first = double.faults.arm("delay", "ping", seconds=0.5)
            assert 200 == client.get("/ping").status_code
            double.faults.disarm(first.id)


def test_halves_leave_others_alone(double: Emulator) -> None:
    """As many as a small machine's limit of open files permits."""
    count = min(500, room.limit() // 2)
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(double)).sendall(HEAD)

        for _ in range(10):
            assert 200 == httpx.get(f"{double.url}/ping", verify=False).status_code
