"""Bytes to a server and back, each exchange within a bound."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

BOUND_S = 30.0
_LISTENED_S = 0.05


class HungError(Exception):
    """Nothing came within the bound."""


@dataclass
class Answer:
    """What came back; the status is None where the connection was closed without a word."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def exchange(port: int, data: bytes, *, ends: bool) -> Answer:
    """Send bytes, and return the first answer; ``ends`` says that no more will come.

    An answer to HEAD has no body, whatever its head says.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        return await asyncio.wait_for(_talk(reader, writer, data, ends), BOUND_S)
    except asyncio.TimeoutError:
        raise HungError(f"no answer within {BOUND_S:g} s") from None
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _talk(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, ends: bool
) -> Answer:
    answer = Answer()
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        writer.write(data)
        if ends:
            writer.write_eof()
        await _read(reader, answer)
        if not data.startswith(b"HEAD "):
            await _body(reader, answer)
    return answer


async def _read(reader: asyncio.StreamReader, answer: Answer) -> None:
    """Read the head of an answer."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        if status != 100:
            break
    answer.status = status
    answer.headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }


async def _body(reader: asyncio.StreamReader, answer: Answer) -> None:
    """Read the body, as far as there is an end to it."""
    if "event-stream" in answer.headers.get("content-type", "") or answer.status == 101:
        with contextlib.suppress(asyncio.TimeoutError):
            answer.body = await asyncio.wait_for(reader.read(65536), _LISTENED_S)
        return
    if "chunked" in answer.headers.get("transfer-encoding", ""):
        await _chunks(reader, answer)
        return
    length = int(answer.headers.get("content-length", "0"))
    answer.body = await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader, answer: Answer) -> None:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        answer.body += (await reader.readexactly(size + 2))[:-2]
