"""Calls of an application as statements: its probes, /invoke, and A2A."""

from __future__ import annotations

from collections.abc import Iterator

from doublecheck.comparing.answers import Answer
from doublecheck.saved_tests.draft import Draft
from doublecheck.saved_tests.literals import are_names, call_of, keywords, literal
from doublecheck.saved_tests.recorded import (
    document_of,
    lower_names,
    object_of,
    own_headers,
    require,
    response_of,
)
from doublecheck.wire import a2a, application
from doublecheck.wire.event_stream import data_of
from doublecheck.wire.exchanges import Exchange

PROBES = ("ping", "health", "readiness", "liveness")
CARD = "/.well-known/agent-card.json"
_OWN = ("prompt", "user_id", "session_id", "request_id", "headers", "self", "streaming")
_NAMED = ("user_id", "session_id", "request_id")


def probe(draft: Draft, exchange: Exchange, name: str) -> Iterator[str]:
    """Yield the statements of a probe."""
    require(exchange.request.method == "GET")
    value = application.read_probe(response_of(exchange))
    yield from draft.compared(value, f"platform.{name}()")


def invoke(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of an invocation, which may be streamed."""
    payload = object_of(exchange)
    prompt = payload.pop("prompt", None)
    require(isinstance(prompt, str) and are_names(payload, _OWN))
    sent = own_headers(exchange)
    named = {name: sent.pop(name) for name in _NAMED if name in sent}
    arguments = [literal(prompt), *keywords({**named, **payload})]
    if sent:
        arguments.append(f"headers={literal(sent)}")
    if Answer(200, lower_names(exchange.headers)).streamed:
        require(exchange.status == 200)
        data = "".join(data_of(exchange.body))
        call = call_of("platform.stream", arguments)
        yield from draft.compared(data, f'"".join(event.data for event in {call})')
        return
    value = application.read_value(response_of(exchange))
    yield from draft.compared(value, call_of("platform.invoke", arguments))


def card(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of a request for an agent's card."""
    require((exchange.request.method, exchange.status) == ("GET", 200))
    yield from draft.compared(document_of(exchange)["name"], 'platform.a2a().card["name"]')


def message(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of a message to an agent that begins a conversation."""
    body = object_of(exchange)
    sent = body["params"]["message"]
    require(body["method"] in a2a.SENDING and not {"contextId", "taskId"} & sent.keys())
    (part,) = sent["parts"]
    require(part.keys() <= {"kind", "text"})
    answer = a2a.read_event(response_of(exchange), exchange.body.decode())
    name = draft.numbered("answer")
    yield f"{name} = platform.a2a().send({literal(part['text'])})"
    yield from draft.compared(answer.state, f"{name}.state")
    yield from draft.compared(list(answer.texts), f"list({name}.texts)")
