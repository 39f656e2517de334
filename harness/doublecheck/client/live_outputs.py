"""Run code and commands, and pass on their outputs while they run.

While a call runs, a second request receives the double's live outputs. Only this part is not
generated for the blocking client, which runs the async code in a thread.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx

from doublecheck.client import loop_thread, transport
from doublecheck.client._async.connection import events
from doublecheck.errors import InterruptedRunError
from doublecheck.values.executions import LiveOutput, OnOutput, Ran, emit_outputs
from doublecheck.wire import calls, output_feed
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.request_log import Exchanges

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agentdouble.core.event_stream import ServerSentEvent
    from doublecheck.client._async.connection import AsyncConnection
    from doublecheck.client._sync.connection import Connection

_LISTENING_WITHIN_S = 10.0  # until a double confirms that it sends outputs
_SILENCE_S = 30.0  # between two events, after the result has arrived
_LAST_OUTPUTS_S = 10.0  # for interrupted code; a double kills code that continues longer
_NOTHING_BEGUN_S = 1.0
_CUT = "[some outputs were too fast to be shown live; the result has all of them]\n"
_MISSED = LiveOutput("stream", {"name": "stderr", "text": _CUT})


async def run_async(
    connection: AsyncConnection,
    call: Call[Ran],
    session_id: str,
    outputs: Request | None,
    on_output: OnOutput | None,
) -> Ran:
    """Make a call that runs code or a command; pass its output to ``on_output``.

    ``outputs`` is the request that listens to the session, or None if the platform has no live
    outputs: then ``on_output`` gets the outputs of the result. Cancelling this interrupts the code.
    """
    if on_output is None:
        return await connection.call(call)
    if outputs is None:
        return emit_outputs(await connection.call(call), on_output)
    transport.refuse_closed(connection.http, connection.target.url)
    with transport.interruptible():
        return await _run(connection.http, connection, call, outputs, on_output)


def run(
    connection: Connection,
    call: Call[Ran],
    session_id: str,
    outputs: Request | None,
    on_output: OnOutput | None,
) -> Ran:
    """Run ``run_async()`` and block. Raise InterruptedRunError for a KeyboardInterrupt."""
    try:
        if on_output is None:
            return connection.call(call)
        if outputs is None:
            return emit_outputs(connection.call(call), on_output)
        transport.refuse_closed(connection.http, connection.target.url)

        async def work(on_output: OnOutput) -> Ran:
            # an HTTP client belongs to its loop
            async with transport.client_async(**connection.options) as http:
                return await _run(http, connection, call, outputs, on_output)

        return loop_thread.run(work, on_output)
    except KeyboardInterrupt:
        raise InterruptedRunError(session_id, double=connection.target.admin) from None


async def _listen(
    outputs: Request, options: Mapping[str, Any], stack: AsyncExitStack
) -> AsyncGenerator[ServerSentEvent, None] | None:
    """Subscribe to a session's events. Return None if the double does not support it.

    This has its own HTTP client: if many runs shared one and all listened, no connection would be
    left for the last call.
    """
    try:
        http = await stack.enter_async_context(transport.client_async(**options))
        stream = http.stream(**transport.arguments(outputs))
        response = await asyncio.wait_for(stack.enter_async_context(stream), _LISTENING_WITHIN_S)
        if response.status_code != httpx.codes.OK:
            return None
        arriving = await stack.enter_async_context(events(response, calls.refuse))
        first = await asyncio.wait_for(anext(arriving), _LISTENING_WITHIN_S)
    except (httpx.TransportError, StopAsyncIteration, asyncio.TimeoutError):
        return None
    return arriving if first.name == output_feed.LISTENING else None


async def _run(
    http: httpx.AsyncClient,
    connection: AsyncConnection | Connection,
    call: Call[Ran],
    outputs: Request,
    on_output: OnOutput,
) -> Ran:
    """Make a call and pass each output to ``on_output`` as it arrives.

    If the double cannot send live outputs, for example an older one, the outputs of the result are
    passed. Cancelling this interrupts the code, and waits some seconds for its last outputs.
    """
    async with AsyncExitStack() as stack:
        arriving = await _listen(outputs, connection.options, stack)
        if arriving is None:
            answer = await _send(http, connection.exchanges, call.request)
            return emit_outputs(call.read(answer), on_output)
        name = secrets.token_hex(8)
        receiver = _Receiver(arriving, name, on_output)
        sent = asyncio.ensure_future(_send(http, connection.exchanges, call.request, name))
        try:
            result = call.read(await _answer(sent, receiver))
        finally:
            for task in (sent, receiver.task):
                task.cancel()
            await asyncio.gather(sent, receiver.task, return_exceptions=True)
        if not receiver.begun:
            return emit_outputs(result, on_output)
        if receiver.dropped or not receiver.over:
            on_output(_MISSED)
        return result


class _Receiver:
    """Forwards the outputs of one run. ``begun`` is set by the first event, ``over`` at the end."""

    def __init__(
        self, arriving: AsyncGenerator[ServerSentEvent, None], name: str, on_output: OnOutput
    ) -> None:
        self.begun = False
        self.over = False
        self.dropped = 0
        self._received = 0
        self._arriving = arriving
        self._name = name
        self._on_output = on_output
        self.task = asyncio.ensure_future(self._receive())

    async def to_its_end(self) -> None:
        """Wait until the run is over or no more events arrive. Raise the error of ``on_output``."""
        received = -1
        while not self.task.done() and received != self._received:
            received = self._received
            await asyncio.wait({self.task}, timeout=_SILENCE_S)
        if self.task.done():
            self.task.result()

    async def last_outputs(self) -> None:
        """Wait for the last outputs of interrupted code."""
        await asyncio.wait({self.task}, timeout=_LAST_OUTPUTS_S if self.begun else _NOTHING_BEGUN_S)

    async def _receive(self) -> None:
        while not self.over:
            try:
                event = await anext(self._arriving)
            except (StopAsyncIteration, httpx.TransportError):
                return
            self._received += 1
            feed_event = output_feed.read(event.name, event.data, self._name)
            if feed_event is not None:
                self._take(feed_event)

    def _take(self, event: output_feed.FeedEvent) -> None:
        self.begun = True
        self.over = event.over
        self.dropped += event.dropped
        if event.output is not None:
            self._on_output(event.output)


async def _answer(sent: asyncio.Task[httpx.Response], receiver: _Receiver) -> httpx.Response:
    """Return the answer after all outputs have been received."""
    tasks: set[asyncio.Task[Any]] = {sent, receiver.task}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if receiver.task.done():
            receiver.task.result()  # raises the error of on_output
        response = await sent
        if response.is_success:
            await receiver.to_its_end()
        return response
    except asyncio.CancelledError:
        sent.cancel()
        await asyncio.wait({sent})
        await receiver.last_outputs()
        raise


async def _send(
    http: httpx.AsyncClient, exchanges: Exchanges, request: Request, name: str | None = None
) -> httpx.Response:
    """Send a request, with a name if given; the recorded exchange does not contain the name."""
    named = request if name is None else output_feed.named(request, name)
    with transport.translated(request.url), exchanges.recording(request) as recording:
        return recording.answered(await http.request(**transport.arguments(named)))
