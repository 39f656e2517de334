"""The requests of the checks, and readers that accept every form that is left open."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx
import pytest

from agentdouble.core import event_stream, invoke_tool, signing
from agentdouble.core.signing import Credentials
from doublecheck.client import transport
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.reference import actions
from doublecheck.contracts.sentences import short
from doublecheck.values.agents import StreamEvent
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.event_stream import is_stream

NAMED = ("user_id", "session_id", "request_id")
# U-INVOKE-HEADERS; a request id only traces a request, so all checks may send the same one
CALLER = {"user_id": "doublecheck", "session_id": "doublecheck", "request_id": "doublecheck"}
READ_WITHIN_S = 20.0
LENGTH_REQUIRED = 411
# each also accepts anything, so the answer must not depend on it
ACCEPTED = (
    "*/*",
    "application/json, */*;q=0.1",
    "text/event-stream, */*;q=0.1",
    "text/html, */*;q=0.8",
    "text/plain;q=0.9, */*;q=0.5",
)

T = TypeVar("T")
Place = tuple["str | int", ...]


def send(platform: Platform, call: Call[T]) -> T:
    """Send the request of a call and return its parsed answer."""
    return call.read(platform.send(call.request))


def invoke(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] = CALLER
) -> httpx.Response:
    """Invoke the application, by default as a caller, and return the raw response."""
    return platform.send(invocation(platform, payload, headers))


def invocation(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] = CALLER
) -> Request:
    """Return the request that invokes the application."""
    sent = {"Content-Type": "application/json", **headers}
    content = json.dumps(payload).encode()
    return calls.request(platform.target, "POST", "/invoke", headers=sent, content=content)


def send_in_parts(platform: Platform, request: Request) -> httpx.Response:
    """Send a chunked body, without its length (RFC 9112, 7.1).

    A server may insist on the length (RFC 9110, 15.5.12), and then gets it.
    """
    content, size = request.content, max(len(request.content) // 5, 1)
    parts = (content[start : start + size] for start in range(0, len(content), size))
    answer = _send(platform, request, content=parts)
    return platform.send(request) if answer.status_code == LENGTH_REQUIRED else answer


def send_without_accept(platform: Platform, request: Request) -> httpx.Response:
    """Send a request without an Accept header, which means that anything is accepted."""
    return _send(platform, request, content=request.content)


def _send(platform: Platform, request: Request, *, content: Any) -> httpx.Response:
    """Send a request with httpx alone, without an Accept header."""
    with (
        transport.translated(request.url),
        platform.exchanges.recording(request) as recording,
        transport.client(**transport.options(platform.target, READ_WITHIN_S)) as client,
    ):
        del client.headers["Accept"]
        sent = dict(request.headers)
        answer = client.request(request.method, request.url, headers=sent, content=content)
        # readers of the answer may need the body, and httpx does not keep a chunked one
        answer.request = httpx.Request(request.method, request.url, content=request.content)
        return recording.answered(answer)


def returned(response: httpx.Response) -> str:
    """Return the string of an entrypoint, extracted from its JSON (U-INVOKE-ENVELOPE).

    Of several strings it is the one that the reference application returns for its payload.
    """
    _require_success(response)
    kind = calls.media_type(response)
    assert calls.is_json(response), f"the answer is {kind} and not JSON: {short(response.text)}"

    strings = strings_in(json_of(response))
    assert strings, f"the answer does not hold a string: {short(response.text)}"
    if len(strings) == 1:
        return next(iter(strings.values()))
    payload = parsed(response.request.content.decode())
    replies = {text for text in strings.values() if _is_reply(text, payload)}
    count = len(replies)
    assert count == 1, f"the answer holds {count} returned strings: {short(response.text)}"
    return replies.pop()


def _is_reply(text: str, payload: Mapping[str, Any]) -> bool:
    """Whether the reference application may return a text for a payload."""
    if payload.get("do") == "say":
        return text == payload.get("prompt")
    document = calls.json_or_none(text)
    if document == payload:  # an envelope may repeat its request
        return False
    return text in actions.REPLIES or isinstance(document, (dict, list))


def leaves(document: Any, *place: str | int) -> dict[Place, Any]:
    """Return the values in JSON by their places, which are field names and indexes."""
    if not isinstance(document, (dict, list)):
        return {place: document}
    items = document.items() if isinstance(document, dict) else enumerate(document)
    return {at: leaf for key, item in items for at, leaf in leaves(item, *place, key).items()}


def strings_in(document: Any) -> dict[Place, str]:
    """Return the strings in JSON by their places."""
    return {at: leaf for at, leaf in leaves(document).items() if isinstance(leaf, str)}


def json_of(response: httpx.Response) -> Any:
    """Return the JSON of an answer, whatever its status."""
    try:
        return response.json()
    except ValueError:
        pytest.fail(f"HTTP {response.status_code} without JSON: {short(response.text)}")


def same(expected: Any, actual: Any) -> bool:
    """Whether two values are equal as JSON, with types and signs: 1, 1.0 and true all differ."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            same(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, float) and isinstance(actual, float):
        return math.copysign(1, expected) == math.copysign(1, actual) and expected == actual
    return type(expected) is type(actual) and bool(expected == actual)


def echo(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] = CALLER
) -> dict[str, Any]:
    """Return payload and headers as the reference application got them, with lower-case names."""
    return echoed(invoke(platform, payload, headers))


def echoed(response: httpx.Response) -> dict[str, Any]:
    """Return the payload and headers that an answer reports, with lower-case names."""
    received = parsed(returned(response))
    headers = {name.lower(): value for name, value in received["headers"].items()}
    return {**received, "headers": headers}


def stream(
    platform: Platform, chunks: Sequence[str], **fields: Any
) -> Generator[StreamEvent, None, None]:
    """Yield the events of an entrypoint that yields these strings.

    With a ``gate``, it yields the next string when that is released, and stops if it is not.
    """
    order = {"do": "stream", "chunks": [*chunks], "within_s": READ_WITHIN_S, **fields}
    return platform.stream("", headers=CALLER, **order)


def data_of(response: httpx.Response) -> list[str]:
    """Return the data of each event. Fail if the answer is not an event stream."""
    _require_success(response)
    assert is_stream(response), f"the answer is not an event stream: {short(response.text)}"
    return event_stream.data_of(response.content)


def chunks(data: Sequence[str], sent: Sequence[str]) -> list[str]:
    """Return the strings that were yielded, extracted from their events (U-INVOKE-SSE-CHUNK).

    They are either all raw or all at one place in JSON. The other strings, and those ``sent``,
    decide how to read a string that looks like JSON.
    """
    if [*data] == [*sent] or not data:
        return [*data]
    strings = [strings_in(calls.json_or_none(text)) for text in data]
    read = [
        [it[place] for it in strings] for place in strings[0] if all(place in it for it in strings)
    ]
    return next(
        (texts for texts in read if texts == [*sent]), read[0] if len(read) == 1 else [*data]
    )


def stream_error(data: str) -> str | None:
    """Return the message of a failure event, or None for other events.

    It may be the string of an entrypoint, which may be sent as JSON (U-INVOKE-SSE-CHUNK).
    """
    document = calls.json_or_none(data)
    for value in (document, *map(calls.json_or_none, strings_in(document).values())):
        error = value.get("error") if isinstance(value, dict) else None
        if isinstance(error, str):
            return error
    return None


def probe(platform: Platform, path: str, **options: Any) -> str:
    """Return what a probe says. Fail if it is an error, or empty."""
    return probe_text(platform.request("GET", path, **options))


def probe_text(response: httpx.Response) -> str:
    """Return what a probe's answer says (U-PROBE-BODIES). Fail if it is empty.

    Of several strings it is the ping function's, or the status.
    """
    _require_success(response)
    document: Any = response.text.strip()
    with contextlib.suppress(ValueError):
        document = json.loads(document)
    strings = {place: text.strip() for place, text in strings_in(document).items()}
    texts = [text for text in strings.values() if text in actions.PINGS]
    if texts or ("status",) in strings or len(strings) == 1:
        document = texts[0] if texts else strings.get(("status",)) or next(iter(strings.values()))
    assert document not in (None, "", {}, []), f"the answer is empty: {short(response.text)}"
    return document if isinstance(document, str) else response.text


def words_of(response: httpx.Response) -> dict[Place, str]:
    """Return the texts and numbers in an answer, JSON or text, in lower case, by their places."""
    try:
        document = response.json()
    except ValueError:
        document = response.text
    words = {place: str(value).strip().lower() for place, value in leaves(document).items()}
    return {place: word for place, word in words.items() if word not in ("", "none")}


def error_in(response: httpx.Response) -> bool:
    """Whether an answer reports an error, whatever its status."""
    document = object_in(response)
    failed = [document.get(name) in (False, "error", "failed") for name in ("success", "status")]
    code = document.get("code")
    errors = (*failed, document.get("error"), document.get("errors"))
    return any(errors) or (isinstance(code, int) and code >= 400)


def control_plane(platform: Platform, body: Mapping[str, Any], **options: Any) -> httpx.Response:
    """Send a signed request, with options of ``signed()``, and return the raw response."""
    return platform.send(signed(platform, body, **options))


def signed(
    platform: Platform,
    body: Mapping[str, Any],
    *,
    action: str = invoke_tool.ACTION,
    version: str = invoke_tool.VERSION,
    credentials: Credentials | None = None,
    when: dt.datetime | None = None,
) -> Request:
    """Return a control-plane request, by default signed now with the target's credentials."""
    address = platform.target.address()
    url = f"{address.url}/?{urlencode({'Action': action, 'Version': version})}"
    content = json.dumps(body).encode()
    headers = signing.sign(
        "POST",
        url,
        content,
        credentials=credentials or address.credentials,
        region=address.region,
        service=address.service,
        when=when or dt.datetime.now(dt.timezone.utc),
    )
    return Request("POST", url, headers, content)


def control_plane_unsigned(platform: Platform, body: Mapping[str, Any]) -> httpx.Response:
    """Send an InvokeTool request without a signature and return the raw response."""
    address = platform.target.control_plane
    url = f"{address}/?Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}"
    headers = {"Content-Type": "application/json"}
    return platform.send(Request("POST", url, headers, json.dumps(body).encode()))


def envelope(response: httpx.Response) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ResponseMetadata and Result of an answer. Fail if one is not an object."""
    document = parsed(response.text)
    metadata, result = document.get("ResponseMetadata"), document.get("Result")
    assert isinstance(metadata, dict), f"ResponseMetadata is not an object: {short(response.text)}"
    assert isinstance(result, dict), f"Result is not an object: {short(response.text)}"
    return metadata, result


def inner(result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON in Result.Result, and its ``data``. Fail if one is not an object."""
    text = result.get("Result")
    assert isinstance(text, str), f"Result.Result is not a string: {short(text)}"
    document = parsed(text)
    data = document.get("data")
    assert isinstance(data, dict), f"data is not an object: {short(text)}"
    return document, data


def parsed(text: str) -> dict[str, Any]:
    """Parse a string as a JSON object. Fail if it is not one."""
    document = calls.json_or_none(text)
    assert isinstance(document, dict), f"{short(text)} is not a JSON object"
    return document


def types(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Return the names of the types of the fields that are present."""
    return {name: type(document[name]).__name__ for name in names if name in document}


def refusal(response: httpx.Response) -> str:
    """Return the message of a control-plane refusal. Fail if it is none (U-ERROR-SHAPE)."""
    document = object_in(response)
    metadata = document.get("ResponseMetadata")
    error = metadata.get("Error") if isinstance(metadata, dict) else None
    refused = 400 <= response.status_code < 500 or isinstance(error, dict)
    assert refused, f"not refused, but answered {response.status_code}: {short(response.text)}"
    assert not document.get("Result"), f"refused, but with a result: {short(response.text)}"
    return response.text if error is None else json.dumps(error, ensure_ascii=False)


def _require_success(response: httpx.Response) -> None:
    route = f"{response.request.method} {response.request.url.path}"
    told = f"{response.status_code}: {short(response.text)}"
    assert response.is_success, f"{route} is answered {told}"


def object_in(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer, or an empty one."""
    document = calls.json_or_none(response.text)
    return document if isinstance(document, dict) else {}
