"""The requests of the checks, and readers that accept every form which is left open."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from agentdouble.core import invoke_tool, signing
from agentdouble.core.signing import Credentials
from doublecheck.errors import NoAnswerError
from doublecheck.wire import calls, event_stream
from doublecheck.wire.calls import Request

if TYPE_CHECKING:
    import httpx

    from doublecheck.client._sync.platform import Platform
    from doublecheck.values.agents import StreamEvent

NAMED = ("user_id", "session_id", "request_id")
CALLER = {"user_id": "doublecheck", "session_id": "doublecheck"}  # U-INVOKE-HEADERS
PING_WITHIN_S = 1.0
PINGS = 3  # a machine that is busy for a moment must not count against the platform
READ_WITHIN_S = 20.0


def invoke(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] = CALLER
) -> httpx.Response:
    """Invoke the application, by default as a caller; return the answer, unchanged."""
    return platform.request(
        "POST",
        "/invoke",
        headers={"Content-Type": "application/json", **headers},
        content=json.dumps(payload).encode(),
    )


def returned(response: httpx.Response) -> str:
    """Return the string of an entrypoint, extracted from its JSON (U-INVOKE-ENVELOPE)."""
    assert (response.status_code, calls.media_type(response)) == (200, "application/json"), (
        response.text
    )

    value = json_of(response)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    assert isinstance(value, str), f"{response.text} holds no string"
    return value


def json_of(response: httpx.Response) -> Any:
    """Return the JSON of an answer, whatever its status."""
    try:
        return response.json()
    except ValueError:
        pytest.fail(f"HTTP {response.status_code} without JSON: {response.text!r}")


def same(expected: Any, actual: Any) -> bool:
    """Whether two values are equal as JSON, where true is no number."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            same(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    return bool(expected == actual) and isinstance(expected, bool) == isinstance(actual, bool)


def echo(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] = CALLER
) -> dict[str, Any]:
    """Return payload and headers as the reference application got them; names in lower case."""
    return echoed(invoke(platform, payload, headers))


def echoed(response: httpx.Response) -> dict[str, Any]:
    """Return what an answer says of the payload and the headers; names in lower case."""
    received = parsed(returned(response))
    received["headers"] = {name.lower(): value for name, value in received["headers"].items()}
    return received


def stream(
    platform: Platform, chunks: Sequence[str], **fields: Any
) -> Generator[StreamEvent, None, None]:
    """Yield the events of an entrypoint that yields these strings.

    With a ``gate`` it yields the next one when that is released, and gives up if it is not.
    """
    order = {"do": "stream", "chunks": [*chunks], "within_s": READ_WITHIN_S, **fields}
    return platform.stream("", headers=CALLER, **order)


def release(platform: Platform, gate: str) -> None:
    """Let the stream of a gate go on by one string."""
    invoke(platform, {"do": "release", "gate": gate, "prompt": ""})


def data_of(response: httpx.Response) -> list[str]:
    """Return the data of each event; fail if the answer is no stream of events."""
    assert (response.status_code, calls.media_type(response)) == (200, event_stream.MEDIA_TYPE), (
        f"HTTP {response.status_code}, no stream: {response.text}"
    )
    return event_stream.data_of(response.content)


def chunk(data: str) -> str:
    """Return the string that was yielded, extracted from its event (U-INVOKE-SSE-CHUNK)."""
    value = _json_or_none(data)
    return value if isinstance(value, str) else data


def chunks(data: Sequence[str], sent: Sequence[str]) -> list[str]:
    """Return the strings that were yielded, extracted from their events (U-INVOKE-SSE-CHUNK).

    They are raw or JSON, all alike. A string that looks like one of JSON is told apart by the
    others, and by what was ``sent``.
    """
    read = [_json_or_none(text) for text in data]
    if [*data] == [*sent] or not all(isinstance(value, str) for value in read):
        return [*data]
    return read


def stream_error(data: str) -> str | None:
    """Return the message of an event that reports a failure, None if it is no such event.

    It may be the string of an entrypoint, which may be sent as JSON (U-INVOKE-SSE-CHUNK).
    """
    document = _json_or_none(chunk(data))
    error = document.get("error") if isinstance(document, dict) else None
    return error if isinstance(error, str) else None


def probe(platform: Platform, path: str, **options: Any) -> str:
    """Return what a probe says; fail if that is an error, or nothing."""
    return probe_text(platform.request("GET", path, **options))


def probe_text(response: httpx.Response) -> str:
    """Return what the answer of a probe says (U-PROBE-BODIES); fail if that is nothing."""
    assert response.status_code == 200, f"HTTP {response.status_code}: {response.text}"
    text: Any = response.text.strip()
    with contextlib.suppress(ValueError):
        text = json.loads(text)
    if isinstance(text, dict):
        text = text.get("status", text)
    text = text.strip() if isinstance(text, str) else text
    assert text not in (None, "", {}, []), f"nothing is said: {response.text!r}"
    return text if isinstance(text, str) else response.text


def ping(platform: Platform) -> str:
    """Return the text of ``/ping``; fail if every attempt takes longer than a second."""
    for _ in range(PINGS):
        with contextlib.suppress(NoAnswerError):
            return probe(platform, "/ping", timeout_s=PING_WITHIN_S)
    pytest.fail(f"GET /ping was {PINGS} times not answered within {PING_WITHIN_S:g} s.")


def answered_in_time(platform: Platform) -> bool:
    """Whether ``/ping`` is answered within a second."""
    try:
        probe(platform, "/ping", timeout_s=PING_WITHIN_S)
    except NoAnswerError:
        return False
    return True


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def control_plane(
    platform: Platform,
    body: Mapping[str, Any],
    *,
    action: str = invoke_tool.ACTION,
    version: str = invoke_tool.VERSION,
    credentials: Credentials | None = None,
) -> httpx.Response:
    """Send a signed control-plane request and return the answer, unchanged."""
    return platform.send(
        signed(platform, body, action=action, version=version, credentials=credentials)
    )


def signed(
    platform: Platform,
    body: Mapping[str, Any],
    *,
    action: str = invoke_tool.ACTION,
    version: str = invoke_tool.VERSION,
    credentials: Credentials | None = None,
    when: dt.datetime | None = None,
) -> Request:
    """Return a control-plane request, by default signed now by the target's credentials."""
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
    """Send an InvokeTool request without a signature and return the answer, unchanged."""
    address = platform.target.control_plane
    url = f"{address}/?Action={invoke_tool.ACTION}&Version={invoke_tool.VERSION}"
    headers = {"Content-Type": "application/json"}
    return platform.send(Request("POST", url, headers, json.dumps(body).encode()))


def envelope(response: httpx.Response) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ResponseMetadata and Result of an answer; fail if one is not an object."""
    document = json_of(response)
    assert isinstance(document, dict), response.text
    metadata, result = document.get("ResponseMetadata"), document.get("Result")
    assert isinstance(metadata, dict), f"ResponseMetadata is no object: {response.text}"
    assert isinstance(result, dict), f"Result is no object: {response.text}"
    return metadata, result


def inner(result: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON in Result.Result, and its ``data``; fail if one is not an object."""
    text = result.get("Result")
    assert isinstance(text, str), f"Result.Result is no string: {text!r}"
    document = parsed(text)
    data = document.get("data")
    assert isinstance(data, dict), f"data is no object: {text}"
    return document, data


def parsed(text: str) -> dict[str, Any]:
    """Parse a string as a JSON object; fail if it is not one."""
    try:
        document = json.loads(text)
    except ValueError:
        pytest.fail(f"{text!r} holds no JSON")
    assert isinstance(document, dict), f"{text!r} holds no JSON object"
    return document


def types(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Return the names of the types of the fields that are present."""
    return {name: type(document[name]).__name__ for name in names if name in document}


def refusal(response: httpx.Response) -> str:
    """Return what a refusal of the control plane says; fail if it is none (U-ERROR-SHAPE)."""
    error, document = None, _object_in(response)
    metadata = document.get("ResponseMetadata")
    if isinstance(metadata, dict):
        error = metadata.get("Error")
    refused = 400 <= response.status_code < 500 or isinstance(error, dict)
    assert refused, f"not refused: HTTP {response.status_code} {response.text}"
    assert not document.get("Result"), f"refused, and with a result: {response.text}"
    return response.text if error is None else json.dumps(error, ensure_ascii=False)


def _object_in(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer, empty if it has none."""
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
