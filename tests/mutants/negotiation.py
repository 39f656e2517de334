"""Mutants that answer by the header Accept in a form that nobody asked for."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from doublecheck.client._sync.platform import Platform
from doublecheck.wire import api_server
from doublecheck.wire.event_stream import is_stream
from tests.mutants import Witnessed, agents, application, wire, witnesses
from tests.mutants.wire import Answer, Ask, Change, Matches, Request
from tests.mutants.witnesses import JSON, numbered, require

STREAM_FIRST = "text/event-stream, application/json;q=0.9"
JSON_FIRST = "application/json, text/event-stream;q=0.9"
OF_A_BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


# ---- changes


def accepting(route: str, when: Callable[[str], bool]) -> Matches:
    """Return a matcher of requests of a route by their header Accept."""
    of_route = wire.routed(route)
    return lambda request: of_route(request) and when(request.header("accept"))


def as_text(answer: Answer, _request: Request) -> None:
    """Answer a string as text."""
    if answer.status == 200 and isinstance(answer.json, str):
        answer.body = answer.json.encode()
        answer.headers["content-type"] = "text/plain; charset=utf-8"


def not_acceptable(answer: Answer, _request: Request) -> None:
    """Refuse an answer that is JSON."""
    if answer.status == 200:
        answer.set(406, {"error": {"message": "Not acceptable."}})


def as_page(answer: Answer, _request: Request) -> None:
    """Answer with a page."""
    answer.body = b"<!doctype html><title>Health</title><p>See the console."
    answer.headers["content-type"] = "text/html"


async def joined(request: Request, ask: Ask) -> Answer:
    """Answer with a list instead of a stream."""
    answer = await ask(request)
    if "text/event-stream" in answer.headers.get("content-type", ""):
        events = [event for event in answer.body.split(b"\n\n") if event.startswith(b"data:")]
        answer.set(200, [wire.data_of(event) or wire.text_of(event) for event in events])
    return answer


def joined_for_json(route: str) -> Change:
    """Answer with a list to clients that prefer JSON."""
    return Change(
        accepting(route, lambda accept: accept.startswith("application/j")), around=joined
    )


# ---- witnesses


def say(accept: str | None) -> Callable[[Platform], None]:
    """Ask for a string with a header Accept, or without one."""

    def witness(platform: Platform) -> None:
        address = urlsplit(platform.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port or 80)
        headers = {**JSON, **({} if accept is None else {"Accept": accept})}
        try:
            body = json.dumps({"do": "say", "prompt": "hello"})
            connection.request("POST", f"{address.path}/invoke", body, headers)
            response = connection.getresponse()
            assert response.headers.get_content_type() == "application/json"
            require([200, "hello"], [response.status, json.loads(response.read())])
        finally:
            connection.close()

    return witness


def strings(accept: str) -> Callable[[Platform], None]:
    """Ask for a stream with a header Accept."""

    def witness(platform: Platform) -> None:
        headers = {"Accept": accept}
        require(numbered(3), witnesses.strings(platform, numbered(3), headers=headers))

    return witness


def run(platform: Platform) -> None:
    """Stream a turn, as a client that would also take JSON."""
    session = witnesses.session_of(platform)
    body = api_server.body(session, "hello", {})
    headers = {**JSON, "Accept": JSON_FIRST}
    answer = platform.request(
        "POST", "/run_sse", headers=headers, content=json.dumps(body).encode()
    )
    assert is_stream(answer), answer.headers


def probe(platform: Platform) -> None:
    """Ask for the health as a browser does."""
    answer = platform.request("GET", "/health", headers={"Accept": OF_A_BROWSER})
    assert "<" not in answer.text, answer.text


TABLE: dict[str, dict[str, Any]] = {
    "INV-04": {
        "answer_text_without_accept": Witnessed(
            Change(accepting(application.INVOKE, lambda accept: not accept), answer=as_text),
            say(None),
        ),
        "answer_text_to_a_browser": Witnessed(
            Change(accepting(application.INVOKE, lambda accept: "html" in accept), answer=as_text),
            say(OF_A_BROWSER),
        ),
        "refuse_who_prefers_a_stream": Witnessed(
            Change(
                accepting(application.INVOKE, lambda accept: accept.startswith("text/event-")),
                answer=not_acceptable,
            ),
            say(STREAM_FIRST),
        ),
    },
    "INV-05": {
        "answer_a_list_to_who_prefers_json": Witnessed(
            joined_for_json(application.INVOKE),
            strings(JSON_FIRST),
        )
    },
    "API-08": {
        "answer_a_list_to_who_prefers_json": Witnessed(
            joined_for_json(agents.STREAM),
            run,
        )
    },
    "PRB-02": {
        "show_a_page_to_a_browser": Witnessed(
            Change(accepting("GET /health", lambda accept: "html" in accept), answer=as_page),
            probe,
        )
    },
}
