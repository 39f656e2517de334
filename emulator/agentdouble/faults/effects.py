"""The effect of each kind of fault on a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.faults import kinds, operations
from agentdouble.faults.during_code import InjectedFault, injecting
from agentdouble.faults.plan import PlannedFault
from agentdouble.faults.response_rewriting import EventEnds, RewrittenResponse, wrong_json
from agentdouble.server.guard import Refusal, Render
from agentdouble.server.protocols import hang_up


@dataclass(frozen=True)
class FaultyCall:
    """A call to which a fault happens; without the fault ``app`` would answer it."""

    armed: PlannedFault
    app: ASGIApp
    render: Render
    scope: Scope
    receive: Receive
    send: Send

    async def execute(self, send: Send | None = None) -> None:
        """Have the application answer, through another ``send`` if it is given."""
        await self.app(self.scope, self.receive, send or self.send)


Effect = Callable[[FaultyCall, Any], Awaitable[None]]


async def answer(
    armed: PlannedFault, app: ASGIApp, render: Render, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a call according to its fault."""
    call = FaultyCall(armed, app, render, scope, receive, send)
    await _EFFECTS[type(armed.fault)](call, armed.fault)


async def _fail(call: FaultyCall, fault: kinds.Fail) -> None:
    if fault.after_execution:
        await call.execute(_lost)
    call.armed.happened()
    if fault.body is not None:
        response = Response(fault.body, fault.status, media_type=fault.content_type)
    else:
        path, query = call.scope["path"], call.scope["query_string"].decode("latin-1")
        code, message = fault.error(is_action=operations.is_action(path, query))
        response = call.render(HTTPConnection(call.scope), Refusal(fault.status, code, message))
    response.headers.update(fault.extra_headers())
    await response(call.scope, call.receive, call.send)


async def _gateway(call: FaultyCall, fault: kinds.Gateway) -> None:
    call.armed.happened()
    response = Response(fault.page(), fault.status, media_type="text/html")
    await response(call.scope, call.receive, call.send)


async def _delay(call: FaultyCall, fault: kinds.Delay) -> None:
    async def send_late(message: Message) -> None:
        if message["type"] == "http.response.start":
            call.armed.happened()
            await call.armed.pause(fault.seconds)
        await call.send(message)

    async def send_slowly(message: Message) -> None:
        if message.get("body"):
            await call.armed.pause(fault.seconds)
        await call.send(message)

    if fault.after_execution:
        await call.execute(send_late)
        return
    call.armed.happened()
    if fault.each_piece:
        await call.execute(send_slowly)
        return
    await call.armed.pause(fault.seconds)
    await call.execute()


async def _cut(call: FaultyCall, fault: kinds.Cut) -> None:
    await call.execute(_Cutter(call, fault).send)


class _Cutter:
    """A wrapper of ``send`` that sends the start of a response and then closes the connection."""

    def __init__(self, call: FaultyCall, fault: kinds.Cut) -> None:
        self._call = call
        self._bytes_left = fault.after_bytes
        self._events = EventEnds(fault.after) if fault.after else None
        self._is_cut = False

    async def send(self, message: Message) -> None:
        if self._is_cut:
            return  # as if the client had disconnected
        if message["type"] == "http.response.start":
            await self._call.send(message)
            return
        content = message.get("body", b"")
        end = self._end(content)
        if end is None:
            await self._call.send(message)
            return
        self._is_cut = True
        self._call.armed.happened()
        if end:
            await self._call.send({**message, "body": content[:end], "more_body": True})
        await hang_up(self._call.scope, self._call.receive)

    def _end(self, content: bytes) -> int | None:
        """Return where to cut a piece of the body, or None if the cut is not in this piece."""
        if self._events is not None:
            return self._events.within(content)
        remaining = self._bytes_left or 0
        if remaining >= len(content) > 0:
            self._bytes_left = remaining - len(content)
            return None
        return remaining if content or not remaining else None


async def _lost(_message: Message) -> None:
    """Take the place of ``send``, so that nothing of the answer is sent."""


async def _lose(call: FaultyCall, fault: kinds.LoseAnswer) -> None:
    await call.execute(_lost)
    call.armed.happened()
    await hang_up(call.scope, call.receive)


async def _reset(call: FaultyCall, fault: kinds.Reset) -> None:
    while (await call.receive()).get("more_body", False):
        pass  # a client that is still sending may take a reset for a normal close
    call.armed.happened()
    await hang_up(call.scope, call.receive, reset=True)


async def _wrong_json(call: FaultyCall, fault: kinds.WrongJson) -> None:
    def rewrite(body: bytes) -> bytes:
        wrong = wrong_json(body, fault)
        if wrong is None:
            return body
        call.armed.happened()
        return wrong

    await call.execute(RewrittenResponse(call.send, rewrite).send)


async def _injected_fault(call: FaultyCall, fault: kinds.DuringCode | kinds.FailStart) -> None:
    with injecting(InjectedFault(call.armed.happened, fault.kind, fault.after)):
        await call.execute()


_EFFECTS: dict[type[kinds.Fault], Effect] = {
    kinds.Fail: _fail,
    kinds.Gateway: _gateway,
    kinds.Delay: _delay,
    kinds.Cut: _cut,
    kinds.LoseAnswer: _lose,
    kinds.Reset: _reset,
    kinds.WrongJson: _wrong_json,
    kinds.KillKernel: _injected_fault,
    kinds.ExpireInstance: _injected_fault,
    kinds.FailStart: _injected_fault,
}
