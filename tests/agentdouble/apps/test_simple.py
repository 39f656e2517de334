from __future__ import annotations

import asyncio
import gc
import json
import logging
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from agentdouble import Emulator, SimpleApp
from tests.agentdouble.calling import background, http

pytestmark = pytest.mark.smoke

FAILED = (
    "An error occurred inside the user-defined entrypoint function (decorated with "
    "@app.entrypoint). Check the application's log."
)
INVALID = "Invalid JSON payload. Please provide a valid JSON object in the request body."


class Strange:
    def __str__(self) -> str:
        return "strange ü"


RETURNED: dict[str, Any] = {
    "str": "ü 'x'",
    "empty": "",
    "surrogate": "\ud800",
    "dict": {"a": 1, "ü": [None, True]},
    "none": None,
    "int": 7,
    "float": 1.5,
    "list": [1, "b"],
    "nan": float("nan"),
    "object": Strange(),
    "bytes": b"x",
    "dict of objects": {"a": Strange},
}
RAISED: dict[str, BaseException] = {
    "value": ValueError("boom"),
    "key": KeyError("prompt"),
    "http": HTTPException(404, "not here"),
    "http 5xx": HTTPException(503, "inner secret"),
    "exit": SystemExit(3),
}


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection, so that reference cycles stay alive."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def numbers() -> AsyncIterator[Any]:
    for chunk in ("one", {"n": 2}, 3, "fünf\nsechs\r\nsieben", "", "\ud800", None):
        yield chunk


def make_app() -> SimpleApp:
    app = SimpleApp("wire")

    @app.entrypoint
    async def answer(payload: dict[str, Any], headers: dict[str, str]) -> Any:
        kind, name = payload["prompt"], payload.get("name", "")
        if kind == "return":
            return RETURNED[name]
        if kind == "raise":
            raise RAISED[name]
        if kind == "payload":
            return payload
        if kind == "headers":
            return headers
        if kind == "response":
            return PlainTextResponse("mine", 201, {"X-Mine": "1"})
        if kind == "async stream":
            return numbers()
        if kind == "sync stream":
            return (chunk for chunk in ("one", 2))
        if kind == "failing stream":
            return failing(RAISED[name])
        return f"prompt was {kind}"

    return app


async def failing(error: BaseException) -> AsyncIterator[str]:
    yield "before"
    raise error


@pytest.fixture(scope="module")
def wire() -> Iterator[str]:
    with Emulator(make_app()) as double:
        yield double.url


def invoke(url: str, kind: str, name: str = "", **headers: str) -> httpx.Response:
    return http.post(f"{url}/invoke", json={"prompt": kind, "name": name}, headers=headers)


def summary(response: httpx.Response) -> tuple[int, str, str]:
    return response.status_code, response.headers["content-type"], response.text


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("str", "\"ü 'x'\""),
        ("empty", '""'),
        ("surrogate", '"\\ud800"'),
        ("dict", '{"a": 1, "ü": [null, true]}'),
        ("none", "null"),
        ("int", "7"),
        ("float", "1.5"),
        ("list", '[1, "b"]'),
        ("nan", '"nan"'),
        ("object", '"strange ü"'),
        ("bytes", "\"b'x'\""),
    ],
)
def test_returned_value_is_wrapped_as_json(wire: str, name: str, body: str) -> None:
    """INV-04: bare JSON, letters unescaped; other objects are sent as their text."""
    assert (200, "application/json", body) == summary(invoke(wire, "return", name))


def test_response_is_returned_unchanged(wire: str) -> None:
    """An entrypoint can build the whole response."""
    response = invoke(wire, "response")

    assert (201, "text/plain; charset=utf-8", "mine") == summary(response)
    assert "1" == response.headers["x-mine"]


def test_every_body_field_reaches_the_entrypoint(wire: str) -> None:
    """INV-01: prompt and all others, unchanged."""
    body = {"prompt": "payload", "more": {"deep": [1, None]}, "ü": "ü"}

    assert body == http.post(f"{wire}/invoke", json=body).json()


def test_every_header_reaches_the_entrypoint_in_lower_case(wire: str) -> None:
    """INV-02: user_id, session_id, request_id and custom ones."""
    headers = invoke(
        wire, "headers", user_id="u", Session_Id="s", request_id="r", X_Mine="1"
    ).json()

    assert ("u", "s", "r", "1") == tuple(
        headers[name] for name in ("user_id", "session_id", "request_id", "x_mine")
    )


STREAMED_AS_JSON = (
    'data: "one"\n\n'
    'data: {"n": 2}\n\n'
    "data: 3\n\n"
    'data: "fünf\\nsechs\\r\\nsieben"\n\n'
    'data: ""\n\n'
    'data: "\\ud800"\n\n'
    "data: null\n\n"
)
STREAMED = (
    "data: one\n\n"
    'data: {"n": 2}\n\n'
    "data: 3\n\n"
    "data: fünf\ndata: sechs\ndata: sieben\n\n"
    "data: \n\n"
    "data: ?\n\n"
    "data: null\n\n"
)


@pytest.mark.parametrize(
    ("kind", "body"),
    [("async stream", STREAMED), ("sync stream", "data: one\n\ndata: 2\n\n")],
)
def test_yielded_values_are_streamed_as_events(wire: str, kind: str, body: str) -> None:
    """INV-05: one event per chunk, raw text, a newline as several data lines."""
    assert (200, "text/event-stream; charset=utf-8", body) == summary(invoke(wire, kind))


def test_stream_failure_is_an_event(wire: str) -> None:
    """INV-06: an object with error, after the earlier events."""
    event = {
        "error": "boom",
        "error_type": "ValueError",
        "message": "An error occurred during streaming",
    }

    response = invoke(wire, "failing stream", "value")

    assert (
        200,
        "text/event-stream; charset=utf-8",
        f"data: before\n\ndata: {json.dumps(event)}\n\n",
    ) == summary(response)


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("value", 500, {"message": FAILED, "type": "ValueError"}),
        ("key", 500, {"message": FAILED, "type": "KeyError"}),
        ("exit", 500, {"message": FAILED, "type": "ApplicationExitError"}),
        ("http", 404, {"message": "not here", "type": "HTTPException"}),
        ("http 5xx", 503, {"message": FAILED, "type": "HTTPException"}),
    ],
)
def test_exception_is_answered_and_the_application_survives(
    wire: str, name: str, status: int, error: dict[str, str]
) -> None:
    """INV-07: a JSON error without the cause's text; the next call works."""
    response = invoke(wire, "raise", name)

    assert (status, {"error": error}) == (response.status_code, response.json())
    assert '"prompt was hi"' == invoke(wire, "hi").text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"text",
        b"[]",
        b'"text"',
        b"null",
        b"1",
        b"\xff\xfe",
        b'{"prompt": "\xff"}',
        b"[" * 100_000,
        b"1" * 5000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_body_that_is_not_a_json_object_is_refused(wire: str, body: bytes) -> None:
    """INV-08: 400 with a clear error, whatever the body is."""
    response = http.post(f"{wire}/invoke", content=body)

    assert (400, {"error": {"message": INVALID, "type": "BadRequest"}}) == (
        response.status_code,
        response.json(),
    )


def test_invocation_without_an_entrypoint_is_not_found() -> None:
    """The 404 says what to register."""
    with Emulator(SimpleApp()) as double:
        response = http.post(f"{double.url}/invoke", json={})

    message = "Entrypoint function is not set. Please register a function with @app.entrypoint."
    assert (404, {"error": {"message": message, "type": "NotFound"}}) == (
        response.status_code,
        response.json(),
    )


# Probes


def test_probes_answer_without_a_ping_function(wire: str) -> None:
    """PRB-02 to PRB-05: all four exist, with a short healthy text."""
    responses = {}
    for path in ("ping", "health", "readiness", "liveness"):
        response = http.get(f"{wire}/{path}")
        assert (200, "application/json") == summary(response)[:2]
        responses[path] = response.json()

    stamps = {path: responses[path].get("timestamp") for path in responses}
    state = {"status": "success", "service": "agent-service"}
    assert {
        "ping": {"status": "pong!"},
        "health": {**state, "status": "healthy", "timestamp": stamps["health"]},
        "readiness": {**state, "timestamp": stamps["readiness"]},
        "liveness": {**state, "timestamp": stamps["liveness"]},
    } == responses


@contextmanager
def pinging(ping: Any, **unknowns: str) -> Iterator[str]:
    app = SimpleApp()
    if ping is not None:
        app.ping(ping)
    chosen = {name.replace("_", "-"): value for name, value in unknowns.items()}
    with Emulator(app, unknowns=chosen) as double:
        yield double.url


@pytest.mark.parametrize(
    ("value", "body"),
    [("up", '{"status": "up"}'), ({"x": 1}, '{"status": {"x": 1}}'), (None, '{"status": null}')],
)
def test_ping_returns_the_ping_function_s_value(value: object, body: str) -> None:
    """PRB-01."""
    with pinging(lambda: value) as url:
        assert (200, "application/json", body) == summary(http.get(f"{url}/ping"))


@pytest.mark.parametrize(
    ("unknowns", "status", "body"),
    [
        ({"U_PROBE_BODIES": "text"}, 200, "pong!"),
        ({"U_PROBE_BODIES": "json-string"}, 200, '"pong!"'),
        ({"U_PROBE_ERROR": "absent-404"}, 404, ""),
    ],
)
def test_ledger_selects_the_ping_bodies(unknowns: dict[str, str], status: int, body: str) -> None:
    """U-PROBE-BODIES and U-PROBE-ERROR."""
    with pinging(None, **unknowns) as url:
        response = http.get(f"{url}/ping")

    assert (status, body) == (response.status_code, response.text)


@pytest.mark.parametrize(("name", "body"), [("text", "{}"), ("json-string", '"{}"')])
def test_ledger_selects_the_other_probe_bodies(name: str, body: str) -> None:
    """U-PROBE-BODIES holds for all four."""
    with pinging(None, U_PROBE_BODIES=name) as url:
        texts = [http.get(f"{url}/{path}").text for path in ("health", "readiness", "liveness")]

    assert [body.format(word) for word in ("healthy", "success", "success")] == texts


def test_slow_ping_is_answered_late_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """U-PING-SLOW late: a warning names the application."""
    logged = threading.Event()
    monkeypatch.setattr("agentdouble.apps.simple.SLOW_PING_S", 0.01)
    handler = logging.Handler()
    handler.emit = lambda _record: logged.set()  # type: ignore[method-assign]
    logger = logging.getLogger("agentdouble.apps.simple")
    logger.addHandler(handler)
    try:
        with pinging(lambda: "late" if logged.wait(30) else "never") as url:
            assert {"status": "late"} == http.get(f"{url}/ping").json()
    finally:
        logger.removeHandler(handler)
    assert "The ping function of agent takes longer than 1 s." in caplog.messages


def test_slow_ping_can_be_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U-PING-SLOW 503: the probe does not wait for the ping function."""
    answered_event = threading.Event()
    monkeypatch.setattr("agentdouble.apps.simple.SLOW_PING_S", 0.01)
    with pinging(lambda: answered_event.wait(30), U_PING_SLOW="503") as url:
        response = http.get(f"{url}/ping")
        answered_event.set()

    assert (503, "SlowPing") == (response.status_code, response.json()["error"]["type"])


# What the ledger has


@pytest.mark.parametrize(
    ("unknowns", "kind", "name", "status", "body"),
    [
        ({"U-INVOKE-ENVELOPE": "object"}, "return", "int", 200, '{"response": 7}'),
        ({"U-INVOKE-ERROR": "text"}, "raise", "value", 500, "Internal Server Error"),
        (
            {"U-INVOKE-STREAM-ERROR": "error-only"},
            "failing stream",
            "value",
            200,
            'data: before\n\ndata: {"error": "boom"}\n\n',
        ),
        (
            {"U-INVOKE-SSE-CHUNK": "json"},
            "async stream",
            "",
            200,
            STREAMED_AS_JSON,
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_ledger_selects_the_invocation_answers(
    unknowns: dict[str, str], kind: str, name: str, status: int, body: str
) -> None:
    """Each implemented alternative, on the wire."""
    with Emulator(make_app(), unknowns=unknowns) as double:
        response = invoke(double.url, kind, name)

    assert (status, body) == (response.status_code, response.text)


@pytest.mark.parametrize(
    ("omitted", "missing"),
    [
        ((), None),
        (("user_id",), "user_id"),
        (("session_id",), "session_id"),
        (("content-type",), "Content-Type: application/json"),
        (
            ("user_id", "session_id", "content-type"),
            "user_id, session_id, Content-Type: application/json",
        ),
    ],
)
def test_headers_can_be_required(omitted: tuple[str, ...], missing: str | None) -> None:
    """U-INVOKE-HEADERS enforced: 400 names the missing ones."""
    headers = {"user_id": "u", "session_id": "s", "content-type": "application/json"}
    sent = {name: value for name, value in headers.items() if name not in omitted}
    with Emulator(make_app(), unknowns={"U-INVOKE-HEADERS": "enforced"}) as double:
        response = http.post(f"{double.url}/invoke", content=b'{"prompt": "hi"}', headers=sent)

    if missing is None:
        assert 200 == response.status_code
    else:
        error = {"message": f"The request lacks {missing}.", "type": "BadRequest"}
        assert (400, {"error": error}) == (response.status_code, response.json())


# While it runs


def test_stream_arrives_as_it_is_produced() -> None:
    """INV-05: the second chunk is produced after the first has arrived."""
    arrived = threading.Event()
    app = SimpleApp()

    @app.entrypoint
    async def stream(payload: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[str]:
        yield "first"
        yield "second" if await asyncio.to_thread(arrived.wait, 30) else "too late"

    lines = []
    with Emulator(app) as double, http.stream("POST", f"{double.url}/invoke", json={}) as response:
        for line in response.iter_lines():
            lines.append(line)
            arrived.set()

    assert ["data: first", "", "data: second", ""] == lines


def test_disconnecting_client_ends_the_stream() -> None:
    """The generator is closed at once in any state, without garbage collection."""
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    app = SimpleApp()

    @app.entrypoint
    async def stream(payload: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[str]:
        try:
            yield "first"
            await asyncio.Event().wait()
        finally:
            ended.put(payload["name"])

    patient = httpx.Client(timeout=30, trust_env=False)
    with Emulator(app) as double, patient as client, without_collection():
        for number in range(30):
            payload = {"name": f"stream {number}"}
            with client.stream("POST", f"{double.url}/invoke", json=payload) as response:
                assert "data: first" == next(response.iter_lines())

            assert payload["name"] == ended.get(timeout=30)


def test_blocking_entrypoint_does_not_block_the_probes() -> None:
    """PRB-06: ping answers while the application blocks its loop."""
    started, go = threading.Event(), threading.Event()
    app = SimpleApp()

    @app.entrypoint
    async def block(payload: dict[str, Any], headers: dict[str, str]) -> str:
        started.set()
        return "let go" if go.wait(30) else "too late"

    with Emulator(app) as double:
        running = background(lambda: http.post(f"{double.url}/invoke", json={}, timeout=60).json())
        assert started.wait(30)
        pong = http.get(f"{double.url}/ping").json()
        go.set()

        assert ({"status": "pong!"}, "let go") == (pong, running.result(60))


# Served by others


def test_application_is_an_asgi_application() -> None:
    """Without a server and without a lifespan, on the caller's own loop."""

    async def call() -> list[tuple[int, str]]:
        transport = httpx.ASGITransport(make_app())
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            answers = [
                await client.post("/invoke", json={"prompt": kind})
                for kind in ("hi", "async stream")
            ]
            answers.append(await client.get("/ping"))
            return [(answer.status_code, answer.text) for answer in answers]

    assert [
        (200, '"prompt was hi"'),
        (200, STREAMED),
        (200, '{"status": "pong!"}'),
    ] == asyncio.run(call())
