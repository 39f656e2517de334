"""What each kind of fault does to a call that meets it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import serving
from agentdouble.faults import injected
from agentdouble.faults.answers import EventEnds, RewrittenAnswer, wrong_json
from agentdouble.faults.plan import Armed
from agentdouble.faults.values import (
    LONGEST_S,
    Cut,
    Delay,
    Drip,
    DuringCode,
    ExpireInstance,
    Fail,
    Fault,
    Gateway,
    KillKernel,
    LoseAnswer,
    Reset,
    WrongJson,
)
from agentdouble.guard import Refusal, Render


@dataclass(frozen=True)
class Encounter:
    """A call that meets a fault; ``app`` is what would answer it."""

    armed: Armed
    app: ASGIApp
    render: Render


Effect = Callable[[Encounter, Any, Scope, Receive, Send], Awaitable[None]]


async def meet(encounter: Encounter, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a call as its fault has it."""
    fault = encounter.armed.fault
    await _EFFECTS[type(fault)](encounter, fault, scope, receive, send)


async def _fail(it: Encounter, fault: Fail, scope: Scope, receive: Receive, send: Send) -> None:
    it.armed.happened()
    if fault.body is not None:
        answer = Response(fault.body, fault.status, media_type=fault.content_type)
    else:
        code, message = fault.error
        answer = it.render(HTTPConnection(scope), Refusal(fault.status, code, message))
    answer.headers.update(fault.extra_headers())
    await answer(scope, receive, send)


async def _gateway(
    it: Encounter, fault: Gateway, scope: Scope, receive: Receive, send: Send
) -> None:
    it.armed.happened()
    await Response(fault.page(), fault.status, media_type="text/html")(scope, receive, send)


async def _delay(it: Encounter, fault: Delay, scope: Scope, receive: Receive, send: Send) -> None:
    async def send_late(message: Message) -> None:
        if message["type"] == "http.response.start":
            it.armed.happened()
            await it.armed.pause(fault.seconds)
        await send(message)

    if fault.after_execution:
        await it.app(scope, receive, send_late)
        return
    it.armed.happened()
    await it.armed.pause(fault.seconds)
    await it.app(scope, receive, send)


async def _cut(it: Encounter, fault: Cut, scope: Scope, receive: Receive, send: Send) -> None:
    cutter = _Cutter(it.armed, fault, scope, receive, send)
    await it.app(scope, receive, cutter.send)


class _Cutter:
    """Lets the start of an answer through and closes the connection there."""

    def __init__(
        self, armed: Armed, fault: Cut, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._armed = armed
        self._connection = (scope, receive)
        self._send = send
        self._bytes_left = fault.after_bytes
        self._events = EventEnds(fault.after) if fault.after else None
        self._is_cut = False

    async def send(self, message: Message) -> None:
        if self._is_cut:
            return  # as with a client that has gone
        if message["type"] == "http.response.start":
            await self._send(message)
            return
        content = message.get("body", b"")
        end = self._end(content)
        if end is None:
            await self._send(message)
            return
        self._is_cut = True
        self._armed.happened()
        if end:
            await self._send({**message, "body": content[:end], "more_body": True})
        await serving.hang_up(*self._connection)

    def _end(self, content: bytes) -> int | None:
        """Return where in a piece of the body it is cut, None for not in it."""
        if self._events is not None:
            return self._events.within(content)
        left = self._bytes_left or 0
        if left >= len(content) > 0:
            self._bytes_left = left - len(content)
            return None
        return left if content or not left else None


async def _lose(
    it: Encounter, fault: LoseAnswer, scope: Scope, receive: Receive, send: Send
) -> None:
    async def lose(_message: Message) -> None:
        pass

    await it.app(scope, receive, lose)
    it.armed.happened()
    await serving.hang_up(scope, receive)


async def _reset(it: Encounter, fault: Reset, scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body", False):
        pass  # to a client that still sends, a reset may look like an end
    it.armed.happened()
    await serving.hang_up(scope, receive, reset=True)


async def _drip(it: Encounter, fault: Drip, scope: Scope, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_S

    async def send_slowly(message: Message) -> None:
        if message["type"] == "http.response.start":
            it.armed.happened()
            await send(message)
            return
        content = message.get("body", b"")
        while content and loop.time() < ends and not serving.is_closed(scope):
            if not await it.armed.pause(fault.pause_s):
                break
            piece, content = content[: fault.size], content[fault.size :]
            await send({**message, "body": piece, "more_body": True})
        await send({**message, "body": content})

    await it.app(scope, receive, send_slowly)


async def _wrong_json(
    it: Encounter, fault: WrongJson, scope: Scope, receive: Receive, send: Send
) -> None:
    def rewrite(body: bytes) -> bytes:
        wrong = wrong_json(body, fault)
        if wrong is None:
            return body
        it.armed.happened()
        return wrong

    await it.app(scope, receive, RewrittenAnswer(send, rewrite).send)


async def _injected_fault(
    it: Encounter, fault: DuringCode, scope: Scope, receive: Receive, send: Send
) -> None:
    with injected.at_hand(injected.InjectedFault(it.armed, fault.kind, fault.after)):
        await it.app(scope, receive, send)


_EFFECTS: dict[type[Fault], Effect] = {
    Fail: _fail,
    Gateway: _gateway,
    Delay: _delay,
    Cut: _cut,
    LoseAnswer: _lose,
    Reset: _reset,
    Drip: _drip,
    WrongJson: _wrong_json,
    KillKernel: _injected_fault,
    ExpireInstance: _injected_fault,
}
