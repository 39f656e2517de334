"""A platform that lies: a proxy in front of a double that changes some of its answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble import serving
from doublecheck import Platform, Target
from doublecheck.comparing.operations import operation
from doublecheck.errors import DoubleCheckError

# changes a document, given its operation and how often that was asked; None leaves it as it is
Lie = Callable[[str, int, Any], Any]
_OF_THE_CONNECTION = ("content-length", "transfer-encoding", "connection", "date", "server")


class Liar:
    """The proxy; ``lie`` is told until ``truth()`` is called."""

    def __init__(self, upstream: str) -> None:
        self._http = httpx.Client(base_url=upstream, timeout=60)
        self._lie: Lie | None = None
        self._asked: dict[str, int] = {}
        self.app = Starlette(
            routes=[Route("/{path:path}", self._answer, methods=["GET", "POST", "DELETE"])]
        )
        self.url = ""

    @contextmanager
    def telling(self, lie: Lie) -> Iterator[Liar]:
        """Tell a lie while the context lasts."""
        self._lie, self._asked = lie, {}
        try:
            yield self
        finally:
            self._lie = None

    def close(self) -> None:
        self._http.close()

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        # with the client's own Host, which it has signed
        url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        came = self._http.request(request.method, url, headers=request.headers.raw, content=body)
        headers = {n: v for n, v in came.headers.items() if n not in _OF_THE_CONNECTION}
        name = operation(request.method, url, body)
        self._asked[name] = self._asked.get(name, 0) + 1
        status, content = self._told(name, came)
        return Response(content, status, headers)

    def _told(self, name: str, came: httpx.Response) -> tuple[int, bytes]:
        if self._lie is None:
            return came.status_code, came.content
        streamed = came.headers.get("content-type", "").startswith("text/event-stream")
        document = _events(came.text) if streamed else _json(came.content)
        told = self._lie(name, self._asked[name], document)
        if told is None:
            return came.status_code, came.content
        if isinstance(told, int):
            return told, came.content
        if not streamed:
            return came.status_code, json.dumps(told).encode()
        return came.status_code, "".join(f"data: {json.dumps(one)}\n\n" for one in told).encode()


@contextmanager
def serving_liar(upstream: str) -> Iterator[Liar]:
    """Serve a liar in front of a platform."""
    liar = Liar(upstream)
    listener = serving.open_socket("127.0.0.1", 0)
    liar.url = serving.address_of(listener)
    server = serving.ServerThread(liar.app, listener)
    server.start()
    try:
        yield liar
    finally:
        server.stop()
        liar.close()


def seen_as_live(behind: Target, liar: Liar) -> Target:
    """Return the liar in front of a double as a live platform."""
    surfaces = dict.fromkeys(("url", "control_plane", "api_server", "mcp", "a2a"), liar.url)
    return dataclasses.replace(behind, kind="live", name="live", **surfaces)


def talk(platform: Platform) -> None:
    """Ask for what the lies are about; a lie may be no answer at all."""
    for code, session in (("x = 6 * 7; print(x)", "a"), ("print(x + 1)", "a"), ("print(1)", "b")):
        with suppress(DoubleCheckError):
            platform.run_code(code, session_id=session)
    session = platform.create_session("echo")
    for ask in (
        lambda: platform.run(session, "one"),
        lambda: list(platform.run_sse(session, "two", streaming=True)),
        lambda: platform.get_session("echo", session.id),
        lambda: platform.delete_session(session),
    ):
        with suppress(DoubleCheckError):
            ask()


def _events(text: str) -> list[Any]:
    lines = text.splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


# five ways to lie, and where each shows


def _inner(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], Any]:
    """Return a change of the JSON that the Result of an InvokeTool contains."""

    def changed(document: Any) -> Any:
        inner = json.loads(document["Result"]["Result"])
        change(inner)
        document["Result"]["Result"] = json.dumps(inner)
        return document

    return changed


def _code(change: Callable[[Any], Any], first: int = 1) -> Lie:
    return lambda name, nth, document: (
        change(document) if name == "InvokeTool RunCode" and nth >= first else None
    )


def _of(wanted: str, change: Callable[[Any], Any]) -> Lie:
    return lambda name, _nth, document: change(document) if name == wanted else None


def _envelope(**fields: Any) -> Callable[[Any], Any]:
    return lambda document: {**document, "Result": {**document["Result"], **fields}}


def _new_session(nth: int) -> Callable[[Any], Any]:
    """Return a change that gives each call of a session another SessionId, consistently."""

    def changed(document: Any) -> Any:
        session = f"s-{nth:020x}"
        told = _inner(lambda one: one["data"].update(session_id=session))(document)
        return _envelope(SessionId=session)(told)

    return changed


def _each_call_another(name: str, nth: int, document: Any) -> Any:
    return _new_session(nth)(document) if name == "InvokeTool RunCode" else None


def _swapped(events: list[Any]) -> list[Any]:
    return [*events[1::-1], *events[2:]]


SESSION = "GET /apps/{app}/users/{user}/sessions/{session}"
DELETE = "DELETE /apps/{app}/users/{user}/sessions/{session}"
INNER = "$.Result.Result"
LIES: dict[str, tuple[Lie, str, str]] = {
    "status of a result": (
        _code(_inner(lambda one: one["data"].update(status="banana")), first=2),
        "InvokeTool RunCode",
        f"{INNER}.data.status",
    ),
    "success of a result": (
        _code(_inner(lambda one: one.update(success=False)), first=2),
        "InvokeTool RunCode",
        f"{INNER}.success",
    ),
    "status of HTTP": (_of(DELETE, lambda _one: 500), DELETE, "status"),
    "output text": (
        _code(_inner(lambda one: one["data"]["outputs"][0].update(text="THE WRONG ANSWER"))),
        "InvokeTool RunCode",
        f"{INNER}.data.outputs[0].text",
    ),
    "no output": (
        _code(_inner(lambda one: one["data"].update(outputs=[]))),
        "InvokeTool RunCode",
        f"{INNER}.data.outputs[0]",
    ),
    "text of an event": (
        _of("POST /run", lambda one: [{**one[0], "content": {**one[0]["content"], "parts": []}}]),
        "POST /run",
        "$[0].content.parts[0]",
    ),
    "two ids of a session": (
        _code(_inner(lambda one: one["data"].update(session_id="s-00000000000000000001"))),
        "InvokeTool RunCode",
        f"{INNER}.data.session_id",
    ),
    "a session that was not asked for": (
        _code(_envelope(UserSessionId="agent_somebody_else")),
        "InvokeTool RunCode",
        "$.Result.UserSessionId",
    ),
    "a tool that was not asked for": (
        _code(_envelope(ToolId="t-other")),
        "InvokeTool RunCode",
        "$.Result.ToolId",
    ),
    "a session that changes its id": (
        _each_call_another,
        "InvokeTool RunCode",
        "$.Result.SessionId",
    ),
    "an id of two sessions": (
        _code(_new_session(0)),
        "InvokeTool RunCode",
        "$.Result.SessionId",
    ),
    "another session of the API server": (
        _of(SESSION, lambda one: {**one, "id": "another-1"}),
        SESSION,
        "$.id",
    ),
    "a history that ends early": (
        _of(SESSION, lambda one: {**one, "events": one["events"][:-1]}),
        SESSION,
        "$.events[3]",
    ),
    "a history of another text": (
        _of(
            SESSION,
            lambda one: {**one, "events": [*one["events"][:-1], {**one["events"][0]}]},
        ),
        SESSION,
        "$.events[3].content.role",
    ),
    "no history": (
        _of(SESSION, lambda one: {n: v for n, v in one.items() if n != "events"}),
        SESSION,
        "$.events",
    ),
    "order of a history": (
        _of(SESSION, lambda one: {**one, "events": _swapped(one["events"])}),
        SESSION,
        "$.events",
    ),
    "order of a stream": (
        _of("POST /run_sse", _swapped),
        "POST /run_sse",
        "events[0]$.partial",
    ),
}
