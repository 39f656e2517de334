"""The simple application: invoke, stream and the four probes (sections 2.1 and 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doublecheck.target.target import Target
from doublecheck.wire import calls, near_misses
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.event_stream import is_stream

if TYPE_CHECKING:
    import httpx


def invocation(
    method: str,
    target: Target,
    prompt: str,
    fields: Mapping[str, Any],
    ids: Mapping[str, str | None],
    headers: Mapping[str, str] | None,
) -> Request:
    """Return the request of an invocation. A header that is None is not sent (INV-03).

    Warns of ``fields`` that look like misspelled arguments of the client's ``method``.
    """
    near_misses.warn(method, fields, (*ids, "headers"))
    named = {name: value for name, value in ids.items() if value is not None}
    all_headers = {"Content-Type": "application/json", **named, **(headers or {})}
    content = calls.json_content({**fields, "prompt": prompt})
    return calls.request(target, "POST", "/invoke", headers=all_headers, content=content)


def read_value(response: httpx.Response) -> Any:
    """Read an invocation's value. Raise RefusedError, or AnswerError if it is not JSON."""
    if response.is_success and is_stream(response):
        raise calls.wrong_answer(
            response,
            "The application streams its answer: use stream() instead of invoke().",
        )
    return calls.read_json(response)


def refuse_no_stream(response: httpx.Response) -> None:
    """Raise RefusedError or AnswerError for an answer that is not a stream of events."""
    calls.refuse(response)
    raise calls.wrong_answer(
        response,
        "The application does not stream its answer: use invoke() instead of stream().",
    )


def probe(target: Target, name: str) -> Call[str]:
    """Return the call of a probe: ping, health, readiness or liveness."""
    return Call(calls.request(target, "GET", f"/{name}"), read_probe)


def read_probe(response: httpx.Response) -> str:
    """Return a probe's text from any of its formats (U-PROBE-BODIES)."""
    calls.refuse(response)
    document = calls.json_or_none(response.text)
    if isinstance(document, dict):
        texts = [value for value in document.values() if isinstance(value, str)]
        document = document.get("status") or (texts[0] if len(texts) == 1 else None)
    return document if isinstance(document, str) else response.text
