"""Read the events of an answer as they arrive, and recognise such an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

from agentdouble.core.event_stream import MEDIA_TYPE, EventDecoder, ServerSentEvent
from doublecheck.wire import calls

if TYPE_CHECKING:
    import httpx

    from doublecheck.wire.exchanges import Exchange


def is_stream(answer: httpx.Response | Exchange) -> bool:
    """Whether an answer is a stream of events, by its Content-Type."""
    return calls.media_type(answer) == MEDIA_TYPE


def read_events(response: httpx.Response) -> Generator[ServerSentEvent, None, None]:
    """Yield the events of an answer as they arrive."""
    decoder = EventDecoder()
    for content in response.iter_bytes():
        yield from decoder.feed(content)
    yield from decoder.feed(b"", final=True)


async def aread_events(response: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events of an answer as they arrive."""
    decoder = EventDecoder()
    async for content in response.aiter_bytes():
        for event in decoder.feed(content):
            yield event
    for event in decoder.feed(b"", final=True):
        yield event
