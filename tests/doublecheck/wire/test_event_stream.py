"""Parsing of event streams by the HTML standard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

import httpx
import pytest

from agentdouble.core.event_stream import ServerSentEvent, data_of
from doublecheck.wire.event_stream import aread_events, is_stream, read_events

STREAM = (
    "\ufeff: a comment\r\n"
    "data: one\r\n\r\n"
    "id: 7\nevent: named\ndata:two\ndata:  lines\n\n"
    ": a comment after an id\n\n"
    "event: without data\n\n"
    "data\n\n"
    "retry: 10\rdata: \u2028\x85\x0b\r\r"
    "data: cut"
)
EVENTS = [
    ServerSentEvent("one", "message"),
    ServerSentEvent("two\n lines", "named"),
    ServerSentEvent("", "message"),
    ServerSentEvent("\u2028\x85\x0b", "message"),
]


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def test_chunk_boundaries_do_not_matter() -> None:
    """They may split characters and line ends."""
    content = STREAM.encode()
    size = len(content)
    in_two = [[content[:cut], content[cut:]] for cut in range(size)]
    splits = [[content[n : n + step] for n in range(0, size, step)] for step in range(1, size)]

    for pieces in (*in_two, *splits):
        assert EVENTS == list(read_events(httpx.Response(200, stream=Pieces(pieces)))), pieces


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_event_is_complete_when_its_last_line_ends(end: str) -> None:
    """A CR ends a line at once, even if a newline follows."""
    events = [f"data: {number}{end}{end}".encode() for number in range(3)]
    if end == "\r\n":  # cut between the two: what follows belongs to the line that has ended
        events = [events[0][:-1], *(b"\n" + event[:-1] for event in events[1:]), b"\n"]
    sent: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for event in events:
            sent.append(event)
            yield event

    response = httpx.Response(200, stream=Pieces(pieces()))

    for number, event in enumerate(read_events(response), start=1):
        assert (str(number - 1), number) == (event.data, len(sent))
    assert len(events) == len(sent)


def test_async_events_are_the_same() -> None:
    response = httpx.Response(200, stream=Pieces([STREAM.encode()]))

    async def read() -> list[ServerSentEvent]:
        return [event async for event in aread_events(response)]

    assert EVENTS == asyncio.run(read())


def test_data_of_content() -> None:
    """Incomplete events are dropped, and invalid UTF-8 does not affect the others."""
    assert [event.data for event in EVENTS] == data_of(STREAM.encode())
    assert ["\ufffd", "x"] == data_of(b"data: \xff\n\ndata: x\n\n")
    assert [] == data_of(b'{"a": 1}')


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream ; charset=utf-8", True),
        ("text/event-streams", False),
        ("", False),
    ],
)
def test_a_stream_is_recognised_by_its_content_type(content_type: str, expected: bool) -> None:
    """Case and parameters do not matter."""
    assert expected is is_stream(httpx.Response(200, headers={"content-type": content_type}))
