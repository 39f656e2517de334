"""Connections take turns: a crowd of requests holds up nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from starlette.types import Receive, Scope, Send

from agentdouble import serving
from agentdouble.serving import room
from agentdouble.serving.turn_taking import user_of
from agentdouble.serving.turns import IN_A_STEP, Rank, Turns

pytestmark = pytest.mark.smoke

CROWD, EACH, STEPS = 400, 5, 10
HEAD = b"GET /%b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Counting:
    """An application that takes some steps of its loop for each answer, and counts them."""

    def __init__(self) -> None:
        self.answered = 0
        self.begun = threading.Event()
        self.go = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not self.begun.is_set():  # the whole crowd has come before anything is answered
            self.begun.set()
            self.go.wait(60)
        for _ in range(STEPS):
            await asyncio.sleep(0)
        self.answered += 1
        body = b"%d" % self.answered
        length = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def served(app: Counting) -> Iterator[tuple[str, int]]:
    listener = serving.open_socket("127.0.0.1", 0)
    address = listener.getsockname()
    server = serving.ServerThread(app, listener)
    server.start()
    try:
        yield address
    finally:
        app.go.set()
        server.stop()


def answer(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received or received.endswith(b"\r\n\r\n"):
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def test_a_crowd_of_pipelines_does_not_hold_up_a_neighbour() -> None:
    """Few of the 2,000 requests that came before it are answered before it is."""
    app = Counting()
    with served(app) as address, contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(CROWD)]
        neighbour = stack.enter_context(socket.create_connection(address, 60))
        for one in crowd:
            one.sendall(HEAD % b"crowd" * EACH)
        assert app.begun.wait(60)
        neighbour.sendall(HEAD % b"neighbour")
        app.go.set()
        before = int(answer(neighbour).rpartition(b"\r\n")[2])
        for one in crowd:
            one.settimeout(60)
            received = b""
            while received.count(b"HTTP/1.1 200") < EACH:
                received += one.recv(65536)

    assert before < CROWD / 2
    assert app.answered == CROWD * EACH + 1


def test_callers_go_one_after_another_however_many_connections_they_have() -> None:
    """Of each rank: a crowd's connections wait for each other, a neighbour's for one of them."""
    order: list[str] = []

    async def take_turns(rank: Rank) -> None:
        turns = Turns(asyncio.get_running_loop())
        for number in range(3 * IN_A_STEP):
            turns.wait(functools.partial(order.append, f"crowd {number}"), rank, caller=1)
        turns.wait(functools.partial(order.append, "neighbour"), rank, caller=2)
        gone = functools.partial(order.append, "gone")
        turns.wait(gone, rank, caller=2)
        turns.leave(gone, caller=2)
        for _ in range(2 * 3):  # steps of the loop, with one between
            await asyncio.sleep(0)

    for rank in Rank:
        order.clear()
        asyncio.run(take_turns(rank))
        assert "neighbour" in order[:2]
        assert len(order) == len(set(order)) == 3 * IN_A_STEP + 1


def test_connections_of_sessions_that_are_users_of_their_own_are_told_apart() -> None:
    """And where nobody says whose one is it is anybody's."""

    class Transport(asyncio.Transport):
        def __init__(self, **known: object) -> None:
            super().__init__(known)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as near:
            ends = {"peername": near.getsockname(), "sockname": address}
            assert os.geteuid() == user_of(Transport(**ends))
    assert user_of(Transport(**ends)) in (0, -1)
    assert -1 == user_of(Transport(peername="", sockname="/socket"))
    assert -1 == user_of(Transport())


def test_a_head_without_an_end_is_refused() -> None:
    """Its connection is closed, and its server lives."""
    app = Counting()
    app.go.set()
    with served(app) as address, socket.create_connection(address, 60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(400):
                connection.sendall(b"a: " + b"b" * 1000 + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert connection.recv(65536).startswith(b"HTTP/1.1 431 ")
        assert app.answered == 0


@pytest.mark.parametrize("size", [1, 7, 4096, 300_000])
def test_bodies_of_many_pieces_arrive_whole(size: int) -> None:
    """Sized or in chunks, however they are cut, with another request behind them."""
    received: list[bytes] = []

    class Reading(Counting):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                body, more = b"", True
                while more:
                    message = await receive()
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                received.append(body)
            await super().__call__(scope, receive, send)

    app = Reading()
    app.go.set()
    body = b"x" * size
    sized = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (size, body)
    pieces = [body[at : at + 1000] for at in range(0, size, 1000)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces)
    chunked = (
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % chunks
    )
    with served(app) as address, socket.create_connection(address, 60) as connection:
        connection.sendall(sized + chunked + sized + HEAD % b"last")
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 4:
            answers += connection.recv(65536)

    assert received == [body, body, body, b""]


def test_the_longest_silent_connection_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many; who waits for an answer does not, and then none is let in."""
    monkeypatch.setattr(room, "limit", lambda: 2)
    app = Counting()
    with served(app) as address, contextlib.ExitStack() as stack:

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(address, 60))

        asking = connect()
        asking.sendall(HEAD % b"asking")
        assert app.begun.wait(60)
        silent, latest = connect(), connect()
        latest.sendall(HEAD % b"latest")
        app.go.set()

        assert b"200 OK" in answer(asking)
        assert b"200 OK" in answer(latest)
        assert silent.recv(1) == b""


def test_without_room_a_request_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nobody is silent; the refusal says what to do."""
    monkeypatch.setattr(room, "limit", lambda: 0)
    monkeypatch.setattr(room.Room, "listen_to", lambda _self, _connection: None)
    app = Counting()
    app.go.set()
    with served(app) as address, socket.create_connection(address, 60) as connection:
        connection.sendall(HEAD % b"one")
        refusal = b"".join(iter(lambda: connection.recv(65536), b""))

    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert b"ulimit -n" in refusal
    assert app.answered == 0
