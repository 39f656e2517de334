"""Calls as statements of a test: each sends a recorded request and asserts its answer.

``application_calls``, ``api_server_calls`` and ``tool_calls`` have those for which Platform has a
method. Here one of them is chosen, and every other request is sent as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agentdouble import invoke_tool
from doublecheck.comparing.answers import Answer
from doublecheck.comparing.references import parsed
from doublecheck.errors import DoubleCheckError
from doublecheck.saved_tests import api_server_calls, application_calls, tool_calls
from doublecheck.saved_tests.draft import Draft
from doublecheck.saved_tests.literals import bytes_literal, call_of, literal
from doublecheck.saved_tests.recorded import (
    NotSpokenError,
    document_of,
    lower_names,
    own_headers,
    path_and_query,
)
from doublecheck.wire.exchanges import Exchange
from doublecheck.wire.redaction import HIDDEN

_UNSPOKEN = (
    *(NotSpokenError, DoubleCheckError),
    *(LookupError, TypeError, ValueError, AttributeError),  # the answer is malformed
)
_TALKS: Mapping[str, Callable[[Draft, Exchange], Iterator[str]]] = {
    "/invoke": application_calls.invoke,
    "/run": api_server_calls.run,
    "/run_sse": api_server_calls.run,
}
_WITHOUT_QUERY: Mapping[str, Callable[[Draft, Exchange], Iterator[str]]] = {
    "/": application_calls.message,
    application_calls.CARD: application_calls.card,
    "/list-apps": api_server_calls.apps,
}


class Statements:
    """Converts exchanges to statements; each can use what the earlier ones have in the draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    @property
    def imports(self) -> set[str]:
        """The names that the statements so far need."""
        return self._draft.imports

    def of(self, exchange: Exchange) -> Iterator[str]:
        """Yield the statements of a call; none if another call makes it implicitly."""
        obstacle = _obstacle(exchange)
        if obstacle:
            yield _not_asked(exchange, obstacle)
            return
        before = copy.deepcopy(self._draft)
        try:
            lines = list(_spoken(self._draft, exchange))
        except _UNSPOKEN:
            self._draft = before
            lines = list(_by_hand(self._draft, exchange))
        yield from lines


def _spoken(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Return the statements of a call by the method of Platform that makes it."""
    path, query = urlsplit(exchange.request.url)[2:4]
    if path.startswith("/_emulator/"):
        return _admin(exchange)
    if "Action=InvokeTool" in query:
        return tool_calls.run_code(draft, exchange)
    if path.strip("/") in application_calls.PROBES and not query:
        return application_calls.probe(draft, exchange, path.strip("/"))
    if path.startswith("/mcp"):
        return tool_calls.mcp_tools(draft, exchange, path)
    if path in _TALKS:
        return _TALKS[path](draft, exchange)
    if path in _WITHOUT_QUERY and not query:
        return _WITHOUT_QUERY[path](draft, exchange)
    if path.startswith("/apps/") and not query:
        return api_server_calls.sessions(draft, exchange, path)
    raise NotSpokenError


def _admin(exchange: Exchange) -> Iterator[str]:
    """Yield statements that move the clock or reset; reading requests are not part of a test."""
    if urlsplit(exchange.request.url).path.endswith("/reset"):
        yield "platform.reset()"
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    if isinstance(body, dict) and isinstance(body.get("advance_s"), (int, float)):
        yield f"platform.clock.advance(seconds={body['advance_s']!r})"


def _by_hand(draft: Draft, exchange: Exchange) -> Iterator[str]:
    """Yield the statements of a call for which Platform has no method."""
    request = exchange.request
    obstacle = _not_by_hand(draft, exchange)
    if obstacle:
        yield _not_asked(exchange, obstacle)
        return
    arguments = [literal(request.method), literal(path_and_query(request.url))]
    sent = own_headers(exchange)
    if request.headers and lower_names(request.headers).get("content-type"):
        sent["Content-Type"] = lower_names(request.headers)["content-type"]
    if sent:
        arguments.append(f"headers={literal(sent)}")
    if request.content:
        arguments.append(f"content={bytes_literal(request.content)}")
    name = draft.numbered("answer")
    yield f"{name} = {call_of('platform.request', arguments)}"
    yield from draft.compared(exchange.status, f"{name}.status_code")
    answer = Answer(exchange.status, lower_names(exchange.headers), exchange.body)
    if answer.media_type == "application/json":
        yield from draft.compared(document_of(exchange), f"{name}.json()")


def _not_by_hand(draft: Draft, exchange: Exchange) -> str | None:
    """Return why a call cannot be made, though it is complete."""
    path, query = urlsplit(exchange.request.url)[2:4]
    if "Action=" in query:
        return "only code is run in a saved test"
    if path.startswith("/mcp"):
        return "only tools are listed and called in a saved test"
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    named = [*path.split("/"), *(body.values() if isinstance(body, dict) else ())]
    if any(draft.knows(one) for one in named if isinstance(one, str)):
        return "it needs an id that an earlier answer gave"
    belongs = path.startswith("/run") or path.count("/") > 5
    if belongs and exchange.status == 200:
        return "its session was made before the first call that is kept"
    return None


def _obstacle(exchange: Exchange) -> str | None:
    """Return why a call cannot be made, whichever it is."""
    if exchange.status is None:
        return "it had no answer"
    if exchange.request_cut or exchange.body_cut:
        return "it was too large to be kept completely"
    if HIDDEN in exchange.request.url or HIDDEN.encode() in exchange.request.content:
        return "a secret in it is not kept"
    action = parse_qs(urlsplit(exchange.request.url).query).get("Action")
    if action and (action != ["InvokeTool"] or _operation(exchange) != invoke_tool.RUN_CODE):
        return "only code is run in a saved test"
    return None


def _operation(exchange: Exchange) -> Any:
    body = parsed(exchange.request.content.decode("utf-8", "replace"))
    return body.get("OperationType") if isinstance(body, dict) else None


def _not_asked(exchange: Exchange, obstacle: str) -> str:
    call = f"{exchange.request.method} {path_and_query(exchange.request.url)}"
    return f"# not asked: {call!a}: {obstacle}"
