"""A proxy in front of a double that falsifies some of its answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.core.diff.operations import operation
from doublecheck import Target
from tests.ports import served

# changes a document, given its operation and how often that was asked; None leaves it as it is
Lie = Callable[[str, int, Any], Any]
_OF_THE_CONNECTION = ("content-length", "transfer-encoding", "connection", "date", "server")


class Liar:
    """A proxy that falsifies answers inside ``lying()``."""

    def __init__(self, upstream: str) -> None:
        self._http = httpx.Client(base_url=upstream, timeout=60)
        self._lie: Lie | None = None
        self._requested: dict[str, int] = {}
        self.app = Starlette(
            routes=[Route("/{path:path}", self._answer, methods=["GET", "POST", "DELETE"])]
        )
        self.url = ""

    @contextmanager
    def lying(self, lie: Lie) -> Iterator[Liar]:
        """Falsify answers within this context."""
        self._lie, self._requested = lie, {}
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
        reply = self._http.request(request.method, url, headers=request.headers.raw, content=body)
        headers = {n: v for n, v in reply.headers.items() if n not in _OF_THE_CONNECTION}
        name = operation(request.method, url, body)
        self._requested[name] = self._requested.get(name, 0) + 1
        status, content = self._altered(name, reply)
        return Response(content, status, headers)

    def _altered(self, name: str, reply: httpx.Response) -> tuple[int, bytes]:
        if self._lie is None:
            return reply.status_code, reply.content
        streamed = reply.headers.get("content-type", "").startswith("text/event-stream")
        document = _events(reply.text) if streamed else _json(reply.content)
        sent = self._lie(name, self._requested[name], document)
        if sent is None:
            return reply.status_code, reply.content
        if isinstance(sent, int):
            return sent, reply.content
        if not streamed:
            return reply.status_code, json.dumps(sent).encode()
        return reply.status_code, "".join(f"data: {json.dumps(item)}\n\n" for item in sent).encode()


@contextmanager
def serving_liar(upstream: str) -> Iterator[Liar]:
    """Serve a lying proxy in front of a platform."""
    liar = Liar(upstream)
    with closing(liar), served(liar.app) as liar.url:
        yield liar


def seen_as_live(behind: Target, liar: Liar) -> Target:
    """Return the proxy in front of a double as a live platform."""
    surfaces = dict.fromkeys(("url", "control_plane", "api_server", "mcp", "a2a"), liar.url)
    return dataclasses.replace(behind, kind="live", name="live", **surfaces)


def _events(text: str) -> list[Any]:
    lines = text.splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _inner(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], Any]:
    """Return a change of the JSON inside the Result of an InvokeTool."""

    def changed(document: Any) -> Any:
        inner = json.loads(document["Result"]["Result"])
        change(inner)
        document["Result"]["Result"] = json.dumps(inner)
        return document

    return changed


def _of(call: str, change: Callable[[Any], Any], first: int = 1) -> Lie:
    return lambda name, nth, document: change(document) if name == call and nth >= first else None


def _result(**fields: Any) -> Callable[[Any], Any]:
    return lambda document: {**document, "Result": {**document["Result"], **fields}}


def _another_session(name: str, nth: int, document: Any) -> Any:
    """Change the SessionId of each call consistently."""
    if name != CODE:
        return None
    session = f"s-{nth:020x}"
    changed = _inner(lambda inner: inner["data"].update(session_id=session))(document)
    return _result(SessionId=session)(changed)


CODE = "InvokeTool RunCode"
SESSION = "GET /apps/{app}/users/{user}/sessions/{session}"
DELETE = "DELETE /apps/{app}/users/{user}/sessions/{session}"
INNER = "$.Result.Result"
LIES: dict[str, tuple[Lie, str, str]] = {
    "status of a result": (
        _of(CODE, _inner(lambda inner: inner["data"].update(status="banana")), first=2),
        CODE,
        f"{INNER}.data.status",
    ),
    "status of HTTP": (_of(DELETE, lambda _document: 500), DELETE, "status"),
    "output text": (
        _of(CODE, _inner(lambda inner: inner["data"]["outputs"][0].update(text="WRONG ANSWER"))),
        CODE,
        f"{INNER}.data.outputs[0].text",
    ),
    "no output": (
        _of(CODE, _inner(lambda inner: inner["data"].update(outputs=[]))),
        CODE,
        f"{INNER}.data.outputs[0]",
    ),
    "a session of somebody else": (
        _of(CODE, _result(UserSessionId="agent_somebody_else")),
        CODE,
        "$.Result.UserSessionId",
    ),
    "a session that changes its id": (_another_session, CODE, "$.Result.SessionId"),
    "a history that ends early": (
        _of(SESSION, lambda session: {**session, "events": session["events"][:-1]}),
        SESSION,
        "$.events[3]",
    ),
    "order of a stream": (
        _of("POST /run_sse", lambda events: [*events[1::-1], *events[2:]]),
        "POST /run_sse",
        "events[0]$.partial",
    ),
}
