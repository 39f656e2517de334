from __future__ import annotations

import asyncio

import pytest

from agentdouble.errors import AnswerLostError
from agentdouble.upstream import Connections

PATIENCE_S = 30


@pytest.mark.anyio
async def test_a_connection_that_is_lost_before_it_is_asked_says_so() -> None:
    """At once, and that nothing has reached the server; nobody will hear of it again."""

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await Connections(f"http://127.0.0.1:{port}").open()
        while not connection.closing:  # noqa: ASYNC110 (nobody tells of it)
            await asyncio.sleep(0)
        with pytest.raises(AnswerLostError, match="the connection was closed") as lost:
            await asyncio.wait_for(connection.ask(b"GET / HTTP/1.1\r\n\r\n"), PATIENCE_S)

    assert lost.value.unreached


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
