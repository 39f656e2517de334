"""Calls of the API server as statements: applications, sessions and runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from agentdouble.code_tool import DEFAULT_USER
from doublecheck.saved_tests.draft import Draft
from doublecheck.saved_tests.literals import are_names, call_of, keywords, literal
from doublecheck.saved_tests.recorded import document_of, object_of, require, response_of
from doublecheck.wire import api_server
from doublecheck.wire.event_stream import data_of
from doublecheck.wire.exchanges import Exchange


def apps(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of a request for the names of the applications."""
    names = api_server.read_apps(response_of(exchange))
    yield from draft.compared(list(names), "list(platform.list_apps())")


def sessions(draft: Draft, exchange: Exchange, path: str) -> Iterator[str]:
    """Yield the statements of a call of sessions, or of the artifacts of one."""
    words = [unquote(word) for word in path.split("/")[1:]]
    require(words[2] == "users" and words[4] == "sessions")
    if len(words) == 7:
        require((words[6], exchange.request.method) == ("artifacts", "GET"))
        call = f"platform.list_artifacts({draft.sessions[words[5]]})"
        yield from draft.compared(document_of(exchange), f"list({call})")
        return
    require(len(words) in (5, 6))
    app, user, method = words[1], words[3], exchange.request.method
    given = {} if user == DEFAULT_USER else {"user_id": user}
    if method == "POST":
        yield from _created(draft, exchange, app, given, words[5:])
    elif len(words) == 6:
        yield from _kept(draft, exchange, words[5], method)
    else:
        require(method == "GET")
        count = len(document_of(exchange))
        call = call_of("platform.list_sessions", [literal(app), *keywords(given)])
        yield from draft.compared(count, f"len({call})")


def _created(
    draft: Draft, exchange: Exchange, app: str, given: Mapping[str, str], id_: list[str]
) -> Iterator[str]:
    body = object_of(exchange) if exchange.request.content else {}
    require(body.keys() <= {"state", "sessionId"} and not (id_ and body))
    created = api_server.read_session(response_of(exchange))
    name = f"session_{len(draft.sessions) + 1}"
    own = id_[0] if id_ else body.get("sessionId")
    more = {"session_id": own, "state": body.get("state")}
    fields = {**given, **{key: value for key, value in more.items() if value is not None}}
    yield f"{name} = {call_of('platform.create_session', [literal(app), *keywords(fields)])}"
    draft.sessions[created.id] = name


def _kept(draft: Draft, exchange: Exchange, id_: str, method: str) -> Iterator[str]:
    name = draft.sessions[id_]
    if method == "DELETE":
        require(exchange.status in (200, 204))
        yield f"platform.delete_session({name})"
        return
    require(method == "GET")
    session = api_server.read_session(response_of(exchange))
    call = f"platform.get_session({name}.app_name, {name}.id, user_id={name}.user_id)"
    told = [event.text for event in session.events]
    yield from draft.compared(told, f"[event.text for event in {call}.events]")


def run(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of a run, whether its events were streamed or not."""
    require(exchange.status == 200)
    body = object_of(exchange)
    name = draft.sessions[body.pop("sessionId")]
    message = body.pop("newMessage")
    require(message == {"role": "user", "parts": [{"text": message["parts"][0]["text"]}]})
    fields = {key: value for key, value in body.items() if key not in ("appName", "userId")}
    streams = urlsplit(exchange.request.url).path == "/run_sse"
    require(are_names(fields, () if streams else ("streaming",)))
    if fields.get("streaming") is False:
        del fields["streaming"]
    arguments = [name, literal(message["parts"][0]["text"]), *keywords(fields)]
    call = call_of("platform.run_sse" if streams else "platform.run", arguments)
    events = (
        [api_server.read_event(data) for data in data_of(exchange.body)]
        if streams
        else [api_server.read_event(json.dumps(one)) for one in document_of(exchange)]
    )
    if fields.get("streaming"):  # the places where the text is cut have no meaning
        told: Any = "".join(event.text for event in events if not event.partial)
        expression = f'"".join(event.text for event in {call} if not event.partial)'
    else:
        told, expression = [event.text for event in events], f"[event.text for event in {call}]"
    yield from draft.compared(told, expression)
