"""Changes on the wire: an ASGI layer in front of a double that changes requests and answers.

Each function returns a Change. Its first argument is a route: a method and a path, in which
``{name}`` stands for one segment and ``*`` for any rest, as in ``GET /apps/{app}/users/{user}/*``;
the method may be ``*``. A function of a change takes what it changes, and a second argument, the
Request, if it has one.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import platform

Headers = dict[str, str]
DROP = object()  # returned by a function of ``events``: no event at all


@dataclass
class Request:
    """A request as it came; names of headers in lower case, ``json`` is None without JSON."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return _parsed(self.body)


@dataclass
class Answer:
    """An answer that is no stream; names of headers in lower case."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True)
class Change:
    """What a layer does to the messages of the requests that it matches."""

    matches: Callable[[Request], bool]
    request: Callable[[Request], None] | None = None
    answer: Callable[[Answer, Request], None] | None = None
    event: Callable[[bytes, Request], Iterable[bytes]] | None = None

    def __call__(self, patch: pytest.MonkeyPatch) -> None:
        install(patch, self)


def install(patch: pytest.MonkeyPatch, *changes: Change) -> None:
    """Put a layer with these changes in front of every double that is made from now on."""
    made = vars(platform)["application"]  # which may have changes in front already
    patch.setattr(platform, "application", lambda *given: Layer(made(*given), changes))


# ---- what can be changed


def answers(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of answers, whatever their status; the function returns another document."""
    return Change(_routed(route), answer=_on_json(change), event=_on_json_event(change))


def statuses(route: str, status: int, body: Any = None) -> Change:
    """Answer with this status; with a ``body`` also with it, as JSON."""

    def answer(answer: Answer, _request: Request) -> None:
        answer.status = status
        if body is not None:
            answer.body = json.dumps(body).encode()
            answer.headers["content-type"] = "application/json"

    return Change(_routed(route), answer=answer)


def texts(route: str, change: Callable[..., str]) -> Change:
    """Change the whole text of answers, and of each event of a stream (its bytes as they are)."""

    def answer(answer: Answer, request: Request) -> None:
        answer.body = _called(change, answer.body.decode(), request).encode()

    def event(raw: bytes, request: Request) -> list[bytes]:
        return [_called(change, raw.decode(), request).encode()]

    return Change(_routed(route), answer=answer, event=event)


def answered(route: str, change: Callable[[Answer, Request], None]) -> Change:
    """Change an answer in place: its status, headers and body."""
    return Change(_routed(route), answer=change)


def events(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of each event; the function returns another, a list of them, or DROP."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        document = _data(raw)
        if document is None:
            return [raw]
        changed = _called(change, document, request)
        if repr(changed) == repr(_data(raw)):  # True == 1
            return [raw]
        some = changed if isinstance(changed, list) else [changed]
        return [_event(one) for one in some if one is not DROP]

    return Change(_routed(route), event=event)


def raw_events(route: str, change: Callable[..., Any]) -> Change:
    """Change the bytes of each event, its empty line included; bytes, or a list of them."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        changed = _called(change, raw, request)
        return changed if isinstance(changed, list) else [changed]

    return Change(_routed(route), event=event)


def requests(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of requests before the double sees it; the function returns another."""

    def in_place(request: Request) -> None:
        if request.json is not None:
            request.body = json.dumps(_called(change, request.json, request)).encode()

    return Change(_routed(route), request=in_place)


def requested(route: str, change: Callable[[Request], None]) -> Change:
    """Change a request in place: its method, path, query, headers and body."""
    return Change(_routed(route), request=change)


def invoke_tool(change: Callable[..., Any]) -> Change:
    """Change the envelope (2.8) of InvokeTool's answers that have a Result."""

    def answer(document: Any, request: Request) -> Any:
        has_result = isinstance(document, dict) and "Result" in document
        return _called(change, document, request) if has_result else document

    return Change(_action("InvokeTool"), answer=_on_json(answer))


def executions(change: Callable[..., Any]) -> Change:
    """Change the JSON of 2.7 in the answers of InvokeTool."""

    def envelope(document: Any, request: Request) -> Any:
        inner = json.loads(document["Result"]["Result"])
        if isinstance(inner.get("data"), dict) and "outputs" in inner["data"]:  # not of a terminal
            document["Result"]["Result"] = json.dumps(_called(change, inner, request))
        return document

    return invoke_tool(envelope)


def actions(name: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of the answers of an action of the control plane."""
    return Change(_action(name), answer=_on_json(change))


def calls(method: str, change: Callable[..., Any]) -> Change:
    """Change the ``result`` of a JSON-RPC method (MCP, A2A), in answers and in streams."""

    def on_result(document: Any, request: Request) -> Any:
        if isinstance(document, dict) and "result" in document:
            document["result"] = _called(change, document["result"], request)
        return document

    return Change(_rpc(method), answer=_on_json(on_result), event=_on_json_event(on_result))


def called_with(method: str, change: Callable[..., Any]) -> Change:
    """Change the ``params`` of a JSON-RPC method before the double sees them."""

    def in_place(request: Request) -> None:
        document = request.json
        document["params"] = _called(change, document.get("params"), request)
        request.body = json.dumps(document).encode()

    return Change(_rpc(method), request=in_place)


# ---- the layer


@dataclass
class Layer:
    """An ASGI application with changes in front; whatever matches none goes through as it is."""

    app: ASGIApp
    changes: tuple[Change, ...]
    applied: int = field(default=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/_emulator"):
            await self.app(scope, receive, send)
            return
        request = _request(scope, await _body(receive))
        matching = [change for change in self.changes if change.matches(request)]
        for change in matching:
            if change.request is not None:
                change.request(request)
        changed = [change for change in matching if change.answer or change.event]
        sender = _Sender(send, request, changed) if changed else send
        await self.app(_scope(scope, request), _replayed(request.body, receive), sender)


class _Sender:
    """Sends an answer onwards, changed: a stream event by event, anything else as a whole."""

    def __init__(self, send: Send, request: Request, changes: list[Change]) -> None:
        self._send, self._request, self._changes = send, request, changes
        self._start: Message = {}
        self._held = b""
        self._streams = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            self._streams = b"text/event-stream" in dict(message["headers"]).get(
                b"content-type", b""
            )
            if self._streams:
                await self._send(message)
        elif message["type"] == "http.response.body":
            await (self._event if self._streams else self._whole)(message)
        else:
            await self._send(message)

    async def _event(self, message: Message) -> None:
        self._held += message.get("body", b"")
        *whole, self._held = re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", self._held)
        ready = [one for raw in whole for one in self._changed(raw)]
        more = message.get("more_body", False)
        if not more and self._held:
            ready += self._changed(self._held)
        for one in ready:
            await self._send({"type": "http.response.body", "body": one, "more_body": True})
        if not more:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _changed(self, raw: bytes) -> list[bytes]:
        some = [raw]
        for change in self._changes:
            if change.event is not None:
                some = [new for one in some for new in change.event(one, self._request)]
        return some

    async def _whole(self, message: Message) -> None:
        self._held += message.get("body", b"")
        if message.get("more_body", False):
            return
        headers = {k.decode().lower(): v.decode() for k, v in self._start["headers"]}
        answer = Answer(self._start["status"], headers, self._held)
        for change in self._changes:
            if change.answer is not None:
                change.answer(answer, self._request)
        answer.headers["content-length"] = str(len(answer.body))
        raw = [(k.encode(), v.encode()) for k, v in answer.headers.items()]
        await self._send({**self._start, "status": answer.status, "headers": raw})
        await self._send({"type": "http.response.body", "body": answer.body})


def _request(scope: Scope, body: bytes) -> Request:
    query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
    headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
    named = {name: values[0] for name, values in query.items()}
    return Request(scope["method"], scope["path"], named, headers, body)


def _scope(scope: Scope, request: Request) -> Scope:
    headers = {**request.headers, "content-length": str(len(request.body))}
    if not request.body and "content-length" not in request.headers:
        del headers["content-length"]
    return {
        **scope,
        "method": request.method,
        "path": request.path,
        "query_string": urlencode(request.query).encode(),
        "raw_path": scope.get("raw_path") if request.path == scope["path"] else None,
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()],
    }


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


# ---- which requests match


def _routed(route: str) -> Callable[[Request], bool]:
    method, _, path = route.partition(" ")
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)).replace(r"\*", ".*")
    return lambda request: (
        method in ("*", request.method) and re.fullmatch(pattern, request.path) is not None
    )


def _action(name: str) -> Callable[[Request], bool]:
    return lambda request: request.query.get("Action") == name


def _rpc(method: str) -> Callable[[Request], bool]:
    def matches(request: Request) -> bool:
        document = request.json if request.method == "POST" else None
        return isinstance(document, dict) and document.get("method") == method

    return matches


# ---- how they are changed


def _on_json(change: Callable[..., Any]) -> Callable[[Answer, Request], None]:
    def answer(answer: Answer, request: Request) -> None:
        document = _parsed(answer.body)
        if document is not None or answer.body == b"null":
            answer.body = json.dumps(_called(change, document, request)).encode()

    return answer


def _on_json_event(change: Callable[..., Any]) -> Callable[[bytes, Request], list[bytes]]:
    def event(raw: bytes, request: Request) -> list[bytes]:
        document = _data(raw)
        if document is None:
            return [raw]
        changed = _called(change, document, request)
        unchanged = repr(changed) == repr(_data(raw))  # True == 1
        return [raw] if unchanged else [_event(changed)]

    return event


def _called(change: Callable[..., Any], value: Any, request: Request) -> Any:
    takes_request = len(inspect.signature(change).parameters) > 1
    return change(value, request) if takes_request else change(value)


def _data(raw: bytes) -> Any:
    lines = re.split("\r\n|\n|\r", raw.decode())  # splitlines() would split texts as well
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    return _parsed("\n".join(data).encode())


def _event(document: Any) -> bytes:
    return f"data: {json.dumps(document)}\n\n".encode()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
