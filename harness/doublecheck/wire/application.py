"""The answers of the simple application and its four probes (sections 2.1 and 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.wire import calls
from doublecheck.wire.event_stream import is_stream

if TYPE_CHECKING:
    import httpx


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


def read_probe(response: httpx.Response) -> str:
    """Return a probe's text from any of its formats (U-PROBE-BODIES)."""
    calls.refuse(response)
    document = calls.json_or_none(response.text)
    if isinstance(document, dict):
        texts = [value for value in document.values() if isinstance(value, str)]
        document = document.get("status") or (texts[0] if len(texts) == 1 else None)
    return document if isinstance(document, str) else response.text
