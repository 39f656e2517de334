"""Changes on the wire: an ASGI layer in front of a double.

A route is a method and a path, in which ``{name}`` stands for one segment and ``*`` for any rest,
as in ``GET /apps/{app}/*``; the method may be ``*``. The function of a change takes what it changes
and, if it has a second parameter, the Request, whose ``state`` is empty for each request.
"""

from __future__ import annotations

import datetime as dt
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.core.signing import Credentials, sign

Headers = dict[str, str]
DROP = object()  # returned by a function of ``events``: no event at all
KEYS = Credentials("AKLTmutants00000000", "the secret of the mutants")


@dataclass
class Request:
    """A request; header names are in lower case."""

    method: str
    path: str
    query: Headers
    headers: Headers
    body: bytes
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """Return the body as JSON, or None if it is not JSON."""
        return _parsed(self.body)

    def sign(self) -> None:
        """Sign a request to the control plane with one of the double's key pairs."""
        scope = re.search(r"Credential=[^/]*/\d*/([^/]+)/([^/]+)/", self.header("authorization"))
        region, service = scope.groups() if scope else ("cn-beijing", "agentkit")
        url = f"http://{self.headers['host']}{self.path}?{urlencode(self.query)}"
        signed = sign(
            self.method,
            url,
            self.body,
            credentials=KEYS,
            region=region,
            service=service,
            when=dt.datetime.now(dt.timezone.utc),
            content_type=self.headers.get("content-type", "application/json"),
        )
        self.headers.pop("x-security-token", None)
        self.headers.update({name.lower(): value for name, value in signed.items()})

    def header(self, name: str) -> str:
        """Return a header, or an empty string."""
        return self.headers.get(name, "")


@dataclass
class Answer:
    """An answer that is not a stream; header names are in lower case."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON, or None if it is not JSON."""
        return _parsed(self.body)

    def set(self, status: int, document: Any) -> None:
        """Replace the answer with JSON."""
        self.status, self.body = status, json.dumps(document).encode()
        self.headers["content-type"] = "application/json"


Matches = Callable[[Request], bool]
Ask = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True)
class Change:
    """A change of matching requests and of their answers and events."""

    matches: Matches
    request: Callable[[Request], Awaitable[None] | None] | None = None
    answer: Callable[[Answer, Request], None] | None = None
    event: Callable[[bytes, Request], Iterable[bytes]] | None = None
    end: Callable[[Request], Iterable[bytes]] | None = None
    head: Callable[[Headers], None] | None = None
    around: Callable[[Request, Ask], Awaitable[Answer]] | None = None


# ---- what can be changed


def requested(route: str, change: Callable[[Request], None]) -> Change:
    """Change requests in place."""
    return Change(routed(route), request=change)


def requests(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of requests."""
    return Change(routed(route), request=_on_body(change))


def in_place(route: str, change: Callable[[Answer, Request], None]) -> Change:
    """Change answers in place."""
    return Change(routed(route), answer=change)


def answers(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of answers and of events."""
    return Change(routed(route), answer=_on_answer(change), event=_on_event(change))


def statuses(route: str, status: int) -> Change:
    """Answer with an error status."""
    return in_place(route, lambda answer, _: answer.set(status, {"error": {"message": "No."}}))


def refused(route: str, when: Matches, status: int = 400) -> Change:
    """Answer some requests of a route with an error."""

    def refuse(answer: Answer, request: Request) -> None:
        if when(request):
            answer.set(status, {"error": {"message": "No."}})

    return in_place(route, refuse)


def events(route: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of events; the function may return a list, or DROP."""
    return Change(routed(route), event=_on_event(change))


def raw_events(route: str, change: Callable[[bytes], Any]) -> Change:
    """Change the bytes of events and their empty line; the function may return a list."""

    def event(raw: bytes, _request: Request) -> list[bytes]:
        changed = change(raw)
        return changed if isinstance(changed, list) else [changed]

    return Change(routed(route), event=event)


def around(route: str, change: Callable[[Request, Ask], Awaitable[Answer]]) -> Change:
    """Answer requests with a function that may call the double any number of times."""
    return Change(routed(route), around=change)


def actions(name: str, change: Callable[..., Any]) -> Change:
    """Change the JSON of answers to a control-plane action."""
    return Change(action(name), answer=_on_answer(change))


def bodies(change: Callable[..., Any], *names: str) -> Change:
    """Change the JSON of requests to the control plane and sign them again."""
    read = _on_body(change)

    def signed(request: Request) -> None:
        before = request.body
        read(request)
        if json.loads(before) != request.json:
            request.sign()

    return Change(action(*(names or ("InvokeTool",))), request=signed)


def calls(method: str, change: Callable[..., Any], route: str = "* *") -> Change:
    """Change the result of a JSON-RPC method, in answers and in events."""

    def result(document: Any, request: Request) -> Any:
        if isinstance(document, dict) and "result" in document:
            return {**document, "result": _called(change, document["result"], request)}
        return document

    return messages(method, result, route)


def messages(method: str, change: Callable[..., Any], route: str = "* *") -> Change:
    """Change whole JSON-RPC answers and events of a method, or of all (``*``)."""
    matches = rpc(method, route)
    return Change(matches, answer=_on_answer(change), event=_on_event(change))


def called_with(method: str, change: Callable[..., Any], route: str = "* *") -> Change:
    """Change the params of a JSON-RPC method."""

    def params(document: Any, request: Request) -> Any:
        return {**document, "params": _called(change, document.get("params"), request)}

    return Change(rpc(method, route), request=_on_body(params))


# ---- which requests match


def routed(route: str) -> Matches:
    """Return a matcher of requests to a route."""
    method, _, path = route.partition(" ")
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)).replace(r"\*", ".*")
    return lambda request: (
        method in ("*", request.method) and re.fullmatch(pattern, request.path) is not None
    )


def action(*names: str) -> Matches:
    """Return a matcher of requests for a control-plane action."""
    return lambda request: request.query.get("Action") in names


def rpc(method: str, route: str = "* *") -> Matches:
    """Return a matcher of requests that call a JSON-RPC method, or any (``*``)."""
    of_route = routed(route)

    def matches(request: Request) -> bool:
        document = request.json if request.method == "POST" and of_route(request) else None
        named = document.get("method") if isinstance(document, dict) else None
        return named is not None and method in ("*", named)

    return matches


# ---- the layer


def installed(patch: pytest.MonkeyPatch, changes: Sequence[Change]) -> None:
    """Put the changes in front of every application that uvicorn serves from now on."""
    initialize = uvicorn.Config.__init__

    def with_layer(self: uvicorn.Config, app: Any, *args: Any, **named: Any) -> None:
        initialize(self, Layer(app, changes), *args, **named)

    patch.setattr(uvicorn.Config, "__init__", with_layer)
    patch.setenv("AGENTDOUBLE_ACCESS_KEY", KEYS.access_key)
    patch.setenv("AGENTDOUBLE_SECRET_KEY", KEYS.secret_key)


@dataclass
class Layer:
    """An ASGI application with changes in front; it passes other requests through."""

    app: ASGIApp
    changes: Sequence[Change]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/_emulator"):
            await self.app(scope, receive, send)
            return
        request = _request(scope, await _body(receive))
        changes = [change for change in self.changes if change.matches(request)]
        for change in changes:
            waiting = change.request(request) if change.request is not None else None
            if waiting is not None:
                await waiting
        sender = _Sender(send, request, changes)
        replacement = next((change.around for change in changes if change.around is not None), None)
        if replacement is None:
            replayed = _replayed(request.body, receive)
            await self.app(_scope(scope, request), replayed, sender if changes else send)
            return

        async def ask(changed: Request) -> Answer:
            collected = _Collector()
            await self.app(_scope(scope, changed), _replayed(changed.body, receive), collected)
            return collected.answer

        await sender.send_complete(await replacement(request, ask))


class _Collector:
    """Collects an answer."""

    def __init__(self) -> None:
        self.answer = Answer(500, {}, b"")

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.answer.status = message["status"]
            self.answer.headers = _decoded(message["headers"])
        elif message["type"] == "http.response.body":
            self.answer.body += message.get("body", b"")


class _Sender:
    """Sends a changed answer onwards: a stream event by event, anything else as a whole."""

    def __init__(self, send: Send, request: Request, changes: list[Change]) -> None:
        self._send, self._request, self._changes = send, request, changes
        self._start: Message = {}
        self._held = b""
        self._streams = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = _decoded(message["headers"])
            self._start = message
            self._streams = "text/event-stream" in headers.get("content-type", "").lower()
            if self._streams:
                for change in self._changes:
                    if change.head is not None:
                        change.head(headers)
                await self._send({**message, "headers": _encoded(headers)})
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif self._streams:
            await self._event(message)
        else:
            self._held += message.get("body", b"")
            if not message.get("more_body", False):
                headers = _decoded(self._start["headers"])
                await self.send_complete(Answer(self._start["status"], headers, self._held))

    async def _event(self, message: Message) -> None:
        self._held += message.get("body", b"")
        *complete, self._held = re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", self._held)
        more = message.get("more_body", False)
        if not more and self._held:
            complete.append(self._held)
        ready = [part for raw in complete for part in self._changed(raw)]
        for change in () if more else self._changes:
            ready += change.end(self._request) if change.end is not None else ()
        for part in ready:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        if not more:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _changed(self, raw: bytes) -> list[bytes]:
        some = [raw]
        for change in self._changes:
            if change.event is not None:
                some = [new for event in some for new in change.event(event, self._request)]
        return some

    async def send_complete(self, answer: Answer) -> None:
        """Send an answer that is not a stream."""
        for change in self._changes:
            if change.answer is not None:
                change.answer(answer, self._request)
        pieces = [answer.body]
        if "transfer-encoding" in answer.headers:
            pieces = [bytes([byte]) for byte in answer.body[:20]] + [answer.body[20:]]
        else:
            answer.headers["content-length"] = str(len(answer.body))
        start = {"type": "http.response.start", "status": answer.status}
        await self._send({**start, "headers": _encoded(answer.headers)})
        for piece in pieces:
            body = {"type": "http.response.body", "body": piece, "more_body": True}
            await self._send(body)
        await self._send({"type": "http.response.body", "body": b""})


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _request(scope: Scope, body: bytes) -> Request:
    query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
    named = {name: values[0] for name, values in query.items()}
    return Request(scope["method"], scope["path"], named, _decoded(scope["headers"]), body)


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
        "headers": _encoded(headers),
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


# ---- JSON


def _on_body(change: Callable[..., Any]) -> Callable[[Request], None]:
    def change_request(request: Request) -> None:
        if request.json is not None:
            request.body = json.dumps(_called(change, request.json, request)).encode()

    return change_request


def _on_answer(change: Callable[..., Any]) -> Callable[[Answer, Request], None]:
    def change_answer(answer: Answer, request: Request) -> None:
        document = answer.json
        if document is not None or answer.body == b"null":
            answer.body = json.dumps(_called(change, document, request)).encode()

    return change_answer


def _on_event(change: Callable[..., Any]) -> Callable[[bytes, Request], list[bytes]]:
    def event(raw: bytes, request: Request) -> list[bytes]:
        document = data_of(raw)
        if document is None:
            return [raw]
        changed = _called(change, document, request)
        if repr(changed) == repr(data_of(raw)):  # True == 1
            return [raw]
        some = changed if isinstance(changed, list) else [changed]
        return [event_of(event) for event in some if event is not DROP]

    return event


def _called(change: Callable[..., Any], value: Any, request: Request) -> Any:
    takes_request = len(inspect.signature(change).parameters) > 1
    return change(value, request) if takes_request else change(value)


def text_of(raw: bytes) -> str:
    """Return the data of an event."""
    lines = re.split("\r\n|\n|\r", raw.decode())  # splitlines() would split texts as well
    return "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))


def data_of(raw: bytes) -> Any:
    """Return the JSON of an event, None if it has none."""
    return _parsed(text_of(raw).encode())


def event_of(document: Any) -> bytes:
    """Return an event with this JSON."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
