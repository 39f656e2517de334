"""The middleware between the journal and the surfaces that applies faults to calls."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.faults import kinds, operations
from agentdouble.faults.plan import ArmedFault, Faults
from agentdouble.journal.entries import UNSEEN
from agentdouble.server.disconnects import replay
from agentdouble.server.guard import Refusal, Render
from agentdouble.server.protocols import hang_up

_END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_DATA = re.compile(rb"(?:^|[\r\n])data")
_NO_JSON = '{"success": tru'


class EventEnds:
    """A search for the end of the ``count``-th server-sent event in a body that comes in pieces.

    A block without data is not an event: it may be a comment that keeps the connection alive.
    """

    def __init__(self, count: int) -> None:
        self._left = count
        self._block = b""

    def within(self, piece: bytes) -> int | None:
        """Return where the event ends in this piece, or None if it does not."""
        before = len(self._block)
        self._block += piece
        end_of_last = 0
        while (end := _END_OF_EVENT.search(self._block)) is not None:
            event, self._block = self._block[: end.end()], self._block[end.end() :]
            end_of_last += end.end()
            self._left -= bool(_DATA.search(event))
            if self._left == 0:
                return end_of_last - before
        return None


class RewrittenResponse:
    """A wrapper of ``send`` that buffers a complete response and then rewrites its body."""

    def __init__(self, send: Send, rewrite: Callable[[bytes], bytes]) -> None:
        self._send = send
        self._rewrite = rewrite
        self._head: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False) or self._head is None:
            return
        body = self._rewrite(self._body)
        others = [(n, v) for n, v in self._head["headers"] if n.lower() != b"content-length"]
        headers = [*others, (b"content-length", str(len(body)).encode())]
        await self._send({**self._head, "headers": headers})
        await self._send({**message, "body": body})


def wrong_json(body: bytes, fault: kinds.WrongJson) -> bytes | None:
    """Return a response of InvokeTool with wrong inner JSON, or None if it has no inner JSON."""
    try:
        answer = json.loads(body)
        inner = answer["Result"]["Result"]
    except (ValueError, TypeError, KeyError):  # an error envelope
        return None
    answer["Result"]["Result"] = _wrong(inner, fault)
    return None if answer["Result"]["Result"] is None else json.dumps(answer).encode()


def _wrong(inner: str, fault: kinds.WrongJson) -> str | None:
    if not fault.without:
        return _NO_JSON if fault.text is None else fault.text
    document = json.loads(inner)
    removed = [_remove(document, name.split(".")) for name in fault.without]
    return json.dumps(document) if all(removed) else None


def _remove(document: Any, names: list[str]) -> bool:
    *parents, last = names
    for name in parents:
        document = document.get(name) if isinstance(document, dict) else None
    if not isinstance(document, dict) or last not in document:
        return False
    del document[last]
    return True


class InjectedFault:
    """A fault that happens once to running code, after ``after`` messages of output.

    ``happened`` counts that it has happened.
    """

    def __init__(self, happened: Callable[[], None], kind: str, after: int) -> None:
        self.kind = kind
        self.after = after
        self.happened = happened
        self._done = False

    def take(self) -> bool:
        """Return whether the fault has not been taken yet, and mark it as taken."""
        is_first, self._done = not self._done, True
        return is_first


_current: ContextVar[InjectedFault | None] = ContextVar("agentdouble_injected_fault", default=None)


def injected_fault() -> InjectedFault | None:
    """Return the fault for the code that is about to run; only the first caller gets it."""
    fault = _current.get()
    return fault if fault is not None and fault.take() else None


@contextmanager
def injecting(fault: InjectedFault) -> Iterator[None]:
    """Make a fault happen to the first code that runs inside."""
    token = _current.set(fault)
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
    scope: Scope
    receive: Receive
    send: Send

    async def execute(self, send: Send | None = None) -> None:
        """Have the application answer, through another ``send`` if it is given."""
        await self.app(self.scope, self.receive, send or self.send)


Effect = Callable[[FaultyCall, Any], Awaitable[None]]


async def answer(
    armed: ArmedFault, app: ASGIApp, render: Render, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a call according to its fault."""
    call = FaultyCall(armed, app, render, scope, receive, send)
    await _EFFECTS[type(armed.fault)](call, armed.fault)


async def _fail(call: FaultyCall, fault: kinds.Fail) -> None:
    call.armed.happened()
    if fault.body is not None:
        response = Response(fault.body, fault.status, media_type=fault.content_type)
    else:
        code, message = fault.error
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
            return  # as for a client that has disconnected
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


async def _lose(call: FaultyCall, fault: kinds.LoseAnswer) -> None:
    async def lose(_message: Message) -> None:
        pass

    await call.execute(lose)
    call.armed.happened()
    await hang_up(call.scope, call.receive)


async def _reset(call: FaultyCall, fault: kinds.Reset) -> None:
    while (await call.receive()).get("more_body", False):
        pass  # a client that is still sending may see a reset as an end
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


async def _injected_fault(call: FaultyCall, fault: kinds.DuringCode) -> None:
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
}


class FaultMiddleware:
    """A middleware that injects the armed faults; ``render`` makes errors in a surface's format.

    Requests below ``except_prefix`` and those that are ``UNSEEN`` have no faults.
    """

    def __init__(self, app: ASGIApp, faults: Faults, render: Render, *, except_prefix: str) -> None:
        self._app = app
        self._faults = faults
        self._render = render
        self._except_prefix = except_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._faults.active or self._is_exempt(scope):
            await self._app(scope, receive, send)
            return
        call, receive = await self._call(scope, receive)
        app = self._app
        # Nested, so that several faults can happen to one call.
        for armed in reversed(self._faults.matching(call)):  # the one armed first is outermost
            app = partial(answer, armed, app, self._render)
        await app(scope, receive, send)

    def _is_exempt(self, scope: Scope) -> bool:
        if scope["type"] != "http" or UNSEEN in scope:
            return True
        path: str = scope["path"]
        return path.startswith(self._except_prefix)

    async def _call(self, scope: Scope, receive: Receive) -> tuple[operations.Call, Receive]:
        """Return the call of a request; read and replay the body if it names the operation."""
        method, path = scope["method"], scope["path"]
        body, query = None, scope["query_string"].decode("latin-1")
        if self._faults.reads_bodies and operations.has_rpc(method, path, query):
            messages = await _read(receive)
            body = b"".join(message.get("body", b"") for message in messages)
            receive = replay(messages, receive)
        return operations.call_of(method, path, query, body), receive


async def _read(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages
