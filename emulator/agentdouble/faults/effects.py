"""The effect of each kind of fault on a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import serving
from agentdouble.faults.plan import ArmedFault
from agentdouble.faults.response_rewriting import EventEnds, RewrittenResponse, wrong_json
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


class InjectedFault:
    """A fault that happens once to running code, after ``after`` messages of output."""

    def __init__(self, armed: ArmedFault, kind: str, after: int) -> None:
        self.kind = kind
        self.after = after
        self._armed = armed
        self._done = False

    def take(self) -> bool:
        """Return whether the fault has not been taken yet, and mark it as taken."""
        taken, self._done = not self._done, True
        return taken

    def happened(self) -> None:
        """Count that the fault has happened."""
        self._armed.happened()


_current: ContextVar[InjectedFault | None] = ContextVar("agentdouble_injected_fault", default=None)


def injected_fault() -> InjectedFault | None:
    """Return the fault for the code that is about to run; only the first caller gets it."""
    found = _current.get()
    return found if found is not None and found.take() else None


@contextmanager
def injecting(found: InjectedFault) -> Iterator[None]:
    """Make a fault happen to the first code that runs inside."""
    token = _current.set(found)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True)
class FaultyCall:
    """A call to which a fault happens; without the fault ``app`` would answer it."""

    armed: ArmedFault
    app: ASGIApp
    render: Render


Effect = Callable[[FaultyCall, Any, Scope, Receive, Send], Awaitable[None]]


async def answer(faulty: FaultyCall, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a call according to its fault."""
    fault = faulty.armed.fault
    await _EFFECTS[type(fault)](faulty, fault, scope, receive, send)


async def _fail(call: FaultyCall, fault: Fail, scope: Scope, receive: Receive, send: Send) -> None:
    call.armed.happened()
    if fault.body is not None:
        response = Response(fault.body, fault.status, media_type=fault.content_type)
    else:
        code, message = fault.error
        response = call.render(HTTPConnection(scope), Refusal(fault.status, code, message))
    response.headers.update(fault.extra_headers())
    await response(scope, receive, send)


async def _gateway(
    call: FaultyCall, fault: Gateway, scope: Scope, receive: Receive, send: Send
) -> None:
    call.armed.happened()
    await Response(fault.page(), fault.status, media_type="text/html")(scope, receive, send)


async def _delay(
    call: FaultyCall, fault: Delay, scope: Scope, receive: Receive, send: Send
) -> None:
    async def send_late(message: Message) -> None:
        if message["type"] == "http.response.start":
            call.armed.happened()
            await call.armed.pause(fault.seconds)
        await send(message)

    if fault.after_execution:
        await call.app(scope, receive, send_late)
        return
    call.armed.happened()
    await call.armed.pause(fault.seconds)
    await call.app(scope, receive, send)


async def _cut(call: FaultyCall, fault: Cut, scope: Scope, receive: Receive, send: Send) -> None:
    cutter = _Cutter(call.armed, fault, scope, receive, send)
    await call.app(scope, receive, cutter.send)


class _Cutter:
    """A wrapper of ``send`` that sends the start of a response and then closes the connection."""

    def __init__(
        self, armed: ArmedFault, fault: Cut, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._armed = armed
        self._connection = (scope, receive)
        self._send = send
        self._bytes_left = fault.after_bytes
        self._events = EventEnds(fault.after) if fault.after else None
        self._is_cut = False

    async def send(self, message: Message) -> None:
        if self._is_cut:
            return  # as for a client that has disconnected
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
        """Return where to cut a piece of the body, or None if the cut is not in this piece."""
        if self._events is not None:
            return self._events.within(content)
        left = self._bytes_left or 0
        if left >= len(content) > 0:
            self._bytes_left = left - len(content)
            return None
        return left if content or not left else None


async def _lose(
    call: FaultyCall, fault: LoseAnswer, scope: Scope, receive: Receive, send: Send
) -> None:
    async def lose(_message: Message) -> None:
        pass

    await call.app(scope, receive, lose)
    call.armed.happened()
    await serving.hang_up(scope, receive)


async def _reset(
    call: FaultyCall, fault: Reset, scope: Scope, receive: Receive, send: Send
) -> None:
    while (await receive()).get("more_body", False):
        pass  # a client that is still sending may see a reset as an end
    call.armed.happened()
    await serving.hang_up(scope, receive, reset=True)


async def _drip(call: FaultyCall, fault: Drip, scope: Scope, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_S

    async def send_slowly(message: Message) -> None:
        if message["type"] == "http.response.start":
            call.armed.happened()
            await send(message)
            return
        content = message.get("body", b"")
        while content and loop.time() < ends and not serving.is_closed(scope):
            if not await call.armed.pause(fault.pause_s):
                break
            piece, content = content[: fault.size], content[fault.size :]
            await send({**message, "body": piece, "more_body": True})
        await send({**message, "body": content})

    await call.app(scope, receive, send_slowly)


async def _wrong_json(
    call: FaultyCall, fault: WrongJson, scope: Scope, receive: Receive, send: Send
) -> None:
    def rewrite(body: bytes) -> bytes:
        wrong = wrong_json(body, fault)
        if wrong is None:
            return body
        call.armed.happened()
        return wrong

    await call.app(scope, receive, RewrittenResponse(send, rewrite).send)


async def _injected_fault(
    call: FaultyCall, fault: DuringCode, scope: Scope, receive: Receive, send: Send
) -> None:
    with injecting(InjectedFault(call.armed, fault.kind, fault.after)):
        await call.app(scope, receive, send)


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
