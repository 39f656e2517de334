"""The events of an answer, for async code, which may leave them early."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

Events: TypeAlias = "AsyncGenerator[ServerSentEvent, None]"


@asynccontextmanager
async def arriving(response: httpx.Response) -> AsyncIterator[Events]:
    """Give the events of an answer as they arrive; close its connection when they are left.

    That comes first: otherwise the generators below the events would do it when they are
    collected, and can wait for nothing where a loop does not hear of them, nest_asyncio's say.
    """
    from httpx_sse import EventSource

    source: Any = EventSource(response).aiter_sse()
    async with aclosing(source) as events:
        try:
            yield events
        finally:
            await response.aclose()
