"""The last exchanges of a client, which help to explain a failure.

They are recorded where requests are sent, because httpx's hooks see neither a request that got no
answer nor our own Request object.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import httpx

from doublecheck.core.notebook_repr import Shown
from doublecheck.target.target import Target
from doublecheck.wire import call_log
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

KEPT = 64
BODY_LIMIT = 64 * 1024
Again = Callable[[Exchange, int], bool]
_INTERRUPTS = (KeyboardInterrupt, asyncio.CancelledError)
_listeners: list[Callable[[Exchange], None]] = []


@contextmanager
def listening(listener: Callable[[Exchange], None]) -> Iterator[None]:
    """Call a function with each exchange of any client that ends while the context lasts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Exchanges(Sequence[Exchange], Shown, drawn_by="notebook.display.double.exchanges"):
    """The last exchanges of a client, oldest first, including unfinished ones."""

    def __init__(self, target: Target | None = None) -> None:
        self._target = target
        self._recordings: deque[Recording] = deque(maxlen=KEPT)
        self.body_limit = BODY_LIMIT  # bytes of a body that are stored

    @contextmanager
    def recording(self, request: Request) -> Iterator[Recording]:
        """Record a request and its answer while the context lasts."""
        recording = Recording(request, self.body_limit)
        self._recordings.append(recording)
        log = call_log.current()
        if log is not None and self._target is not None:
            log.append((self._target, recording))
        try:
            yield recording
        except BaseException as error:
            recording.failed(error)
            raise
        finally:
            recording.ended()
            for listener in _listeners:
                listener(recording.exchange)

    def clear(self) -> None:
        """Remove all exchanges."""
        self._recordings.clear()

    @overload
    def __getitem__(self, index: int) -> Exchange: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Exchange, ...]: ...

    def __getitem__(self, index: int | slice) -> Exchange | tuple[Exchange, ...]:
        if isinstance(index, slice):
            return tuple(recording.exchange for recording in [*self._recordings.copy()][index])
        return self._recordings[index].exchange

    def __len__(self) -> int:
        return len(self._recordings)

    def __repr__(self) -> str:
        return f"<{len(self)} exchanges>"


class Recording:
    """One exchange in progress. ``exchange`` is its current state."""

    def __init__(self, request: Request, body_limit: int = BODY_LIMIT) -> None:
        self._began = time.monotonic()
        self._body = bytearray()
        self._body_limit = body_limit
        self._known = _cut_to_limit(request, body_limit)
        self._under_way = True

    @property
    def exchange(self) -> Exchange:
        elapsed_s = self._elapsed_s() if self._under_way else self._known.elapsed_s
        return dataclasses.replace(self._known, body=bytes(self._body), elapsed_s=elapsed_s)

    def answered(self, response: httpx.Response) -> httpx.Response:
        """Record an answer that has been read, and return it."""
        self._headed(response)
        self._received(response.content)
        return response

    def streamed(self, response: httpx.Response) -> httpx.Response:
        """Record an answer while it is read, and return it."""
        self._headed(response)
        response.stream = _RecordedStream(response.stream, self._received)
        return response

    def failed(self, error: BaseException) -> None:
        """Record that the answer is missing or incomplete."""
        if self._known.error is not None:
            return
        if isinstance(error, httpx.HTTPError):
            self._known = dataclasses.replace(self._known, error=f"{type(error).__name__}: {error}")
        elif isinstance(error, _INTERRUPTS):
            self._known = dataclasses.replace(self._known, error="it was interrupted")

    def repeats(self, again: Again | None, number: int) -> bool:
        """Whether the request is sent again, as a function decides. Record that it is."""
        repeated = again is not None and again(self.exchange, number)
        self._known = dataclasses.replace(self._known, repeated=repeated)
        return repeated

    def ended(self) -> None:
        """Record the end of the exchange."""
        self._known = dataclasses.replace(self._known, elapsed_s=self._elapsed_s())
        self._under_way = False

    def _headed(self, response: httpx.Response) -> None:
        self._known = dataclasses.replace(
            self._known, status=response.status_code, headers=dict(response.headers)
        )

    def _received(self, chunk: bytes) -> None:
        free = self._body_limit - len(self._body)
        self._body += chunk[:free]
        if len(chunk) > free:
            self._known = dataclasses.replace(self._known, body_cut=True)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began


def _cut_to_limit(request: Request, limit: int) -> Exchange:
    content = request.content
    if len(content) <= limit:
        return Exchange(request)
    return Exchange(dataclasses.replace(request, content=content[:limit]), request_cut=True)


class _RecordedStream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The stream of an answer. It records every chunk."""

    def __init__(self, stream: Any, received: Any) -> None:
        self._stream = stream
        self._received = received

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._received(chunk)
            yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._received(chunk)
            yield chunk

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()
