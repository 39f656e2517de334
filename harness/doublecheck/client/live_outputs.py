"""Running code and hearing what it says: a call, and beside it the double's live outputs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx

from doublecheck import live
from doublecheck.client import transport as sending
from doublecheck.live import LiveOutput, OnOutput, Ran
from doublecheck.wire import output_feed as feed
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.events import Events, arriving
from doublecheck.wire.request_log import Exchanges

_HEARD_S = 10.0  # until a double says that we are heard
_SILENCE_S = 30.0  # between two events, once the result is here
_LAST_WORDS_S = 10.0  # of code that is interrupted: a double kills what goes on for longer
_NOTHING_BEGUN_S = 1.0


@dataclass(frozen=True)
class Ears:
    """What listens to a session: a request, and the options of a client that sends it.

    A client of its own, for one that many runs share would have no connection left for the
    last call while all of them listen.
    """

    request: Request
    options: Mapping[str, Any]


async def run(
    http: httpx.AsyncClient,
    exchanges: Exchanges,
    call: Call[Ran],
    ears: Ears,
    on_output: OnOutput,
) -> Ran:
    """Make a call that runs code, or a command; call ``on_output`` with each output as it comes.

    Where ``ears`` hear nothing, because the double is an older one, say, the outputs are those
    of the result. Whoever cancels this interrupts the code, and is kept for seconds until it
    has said its last.
    """
    async with AsyncExitStack() as stack:
        events = await _listen(stack, ears)
        if events is None:
            answer = await _ask(http, exchanges, call.request)
            return live.handed_over(call.read(answer), on_output)
        name = secrets.token_hex(8)
        hearing = _Hearing(events, name, on_output)
        asking = asyncio.ensure_future(_ask(http, exchanges, call.request, name))
        try:
            result = call.read(await _answered(asking, hearing))
        finally:
            for task in (asking, hearing.task):
                task.cancel()
            await asyncio.gather(asking, hearing.task, return_exceptions=True)
        if not hearing.begun:
            return live.handed_over(result, on_output)
        if hearing.dropped or not hearing.over:
            on_output(_missed())
        return result


class _Hearing:
    """Hands over what is heard of one run; ``begun`` when something was, ``over`` at its end."""

    def __init__(self, events: Events, name: str, on_output: OnOutput) -> None:
        self.begun = False
        self.over = False
        self.dropped = 0
        self._heard = 0
        self._events = events
        self._name = name
        self._on_output = on_output
        self.task = asyncio.ensure_future(self._hear())

    async def to_its_end(self) -> None:
        """Wait until it is over, or nothing more is heard; raise what ``on_output`` has raised."""
        heard = -1
        while not self.task.done() and heard != self._heard:
            heard = self._heard
            await asyncio.wait({self.task}, timeout=_SILENCE_S)
        if self.task.done():
            self.task.result()

    async def last_words(self) -> None:
        """Wait for what code that is interrupted still says."""
        await asyncio.wait({self.task}, timeout=_LAST_WORDS_S if self.begun else _NOTHING_BEGUN_S)

    async def _hear(self) -> None:
        while not self.over:
            try:
                event = await anext(self._events)
            except (StopAsyncIteration, httpx.TransportError):
                return
            self._heard += 1
            said = feed.read(event.event, event.data, self._name)
            if said is not None:
                self._take(said)

    def _take(self, said: feed.Said) -> None:
        self.begun = True
        self.over = said.over
        self.dropped += said.dropped
        if said.output is not None:
            self._on_output(said.output)


async def _answered(asking: asyncio.Task[httpx.Response], hearing: _Hearing) -> httpx.Response:
    """Return the answer when everything is heard, too."""
    tasks: set[asyncio.Task[Any]] = {asking, hearing.task}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if hearing.task.done():
            hearing.task.result()  # what on_output has raised
        response = await asking
        if response.is_success:
            await hearing.to_its_end()
        return response
    except asyncio.CancelledError:
        asking.cancel()
        await asyncio.wait({asking})
        await hearing.last_words()
        raise


async def _listen(stack: AsyncExitStack, ears: Ears) -> Events | None:
    """Return what is heard of a session from now on, None if the double lets nobody listen."""
    try:
        http = await stack.enter_async_context(httpx.AsyncClient(**ears.options))
        stream = http.stream(**sending.arguments(ears.request))
        response = await asyncio.wait_for(stack.enter_async_context(stream), _HEARD_S)
        if response.status_code != httpx.codes.OK:
            return None
        events = await stack.enter_async_context(arriving(response))
        first = await asyncio.wait_for(anext(events), _HEARD_S)
    except (httpx.TransportError, StopAsyncIteration, asyncio.TimeoutError):
        return None
    return events if first.event == feed.LISTENING else None


async def _ask(
    http: httpx.AsyncClient, exchanges: Exchanges, request: Request, name: str | None = None
) -> httpx.Response:
    """Send a request; what is recorded of it has no name, as it has none where nobody listens."""
    sent = request if name is None else feed.named(request, name)
    with sending.translated(request.url), exchanges.recording(request) as recording:
        return recording.answered(await http.request(**sending.arguments(sent)))


def _missed() -> LiveOutput:
    text = "[some outputs came too fast to be shown live; the result has all of them]\n"
    return LiveOutput("stream", {"name": "stderr", "text": text})
