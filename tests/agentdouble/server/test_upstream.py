from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator

import pytest

from agentdouble.errors import AnswerLostError
from agentdouble.server.upstream import Connections
from agentdouble.server.upstream_connection import UpstreamAnswer
from tests.agentdouble.calling import TIMEOUT_S

pytestmark = [pytest.mark.anyio, pytest.mark.smoke]
EMPTY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def connections(listener: socket.socket) -> Connections:
    return Connections(f"http://127.0.0.1:{listener.getsockname()[1]}")


async def accept(listener: socket.socket) -> socket.socket:
    """Return the next connection."""
    loop = asyncio.get_running_loop()
    accepted, _ = await asyncio.wait_for(loop.sock_accept(listener), TIMEOUT_S)
    return accepted


async def serve(
    server: socket.socket, pending: asyncio.Future[UpstreamAnswer], raw: bytes
) -> bytes:
    """Answer a request and return its body."""
    loop = asyncio.get_running_loop()
    await loop.sock_recv(server, 1000)
    await loop.sock_sendall(server, raw)
    answer, body = await pending, b""
    while not answer.done:
        body += await answer.read()
    return body


async def test_a_closed_connection_is_not_reused(
    listener: socket.socket,
) -> None:
    """Even if the close has not been noticed yet."""
    pool = connections(listener)
    pending = asyncio.ensure_future(pool.ask("GET", "/", [], b""))
    server = await accept(listener)
    await serve(server, pending, EMPTY)
    server.close()

    await pool.open()

    (await accept(listener)).close()
    pool.close()


async def test_a_connection_kept_too_long_is_not_reused(
    listener: socket.socket,
) -> None:
    """Its server may be about to close it, though the loop was late."""
    pool = Connections(f"http://127.0.0.1:{listener.getsockname()[1]}", kept_s=0)
    pending = asyncio.ensure_future(pool.ask("GET", "/", [], b""))
    with await accept(listener) as server:
        await serve(server, pending, EMPTY)
        await pool.open()  # nothing else has happened in the loop

        (await accept(listener)).close()
    pool.close()


async def test_an_answer_before_the_request_ends_the_connection(
    listener: socket.socket,
) -> None:
    """The rest of the request would be taken for another one."""
    pool = connections(listener)
    connection = await pool.open()
    answer = connection.begin(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n", more=True)
    with await accept(listener) as server:
        pending: asyncio.Future[UpstreamAnswer] = asyncio.get_running_loop().create_future()
        pending.set_result(answer)
        await serve(server, pending, EMPTY)

        assert connection.closing
    pool.close()


async def test_an_early_answer_is_read_despite_a_reset(
    listener: socket.socket,
) -> None:
    """A server may answer without reading all of a request."""
    pool = connections(listener)
    connection = await pool.open()
    answer = connection.begin(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n", more=True)
    with await accept(listener) as server:
        await asyncio.get_running_loop().sock_recv(server, 1000)
        server.send(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno")
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await connection.send(b"123", more=True)  # nothing else has happened in the loop
    await answer.wait_for_head()
    body = b""
    while not answer.done:
        body += await answer.read()

    assert (413, b"no", True) == (answer.status, body, connection.closing)


async def test_connection_refused_differs_from_connection_lost(listener: socket.socket) -> None:
    """Only a refused connection guarantees that nothing was reached."""
    pool = connections(listener)
    pending = asyncio.ensure_future(pool.ask("GET", "/", [], b""))
    with await accept(listener) as server:
        await asyncio.get_running_loop().sock_recv(server, 1000)
    with pytest.raises(AnswerLostError) as broken:
        await pending
    listener.close()
    with pytest.raises(AnswerLostError) as refused:
        await pool.open()

    assert (False, True) == (broken.value.unreached, refused.value.unreached)
