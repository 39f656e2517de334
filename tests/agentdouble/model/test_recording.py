"""A recording is made and replayed through the double's own routes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.core.redaction import without_secrets_inside
from tests.agentdouble.calling import background

pytestmark = pytest.mark.smoke
GOOD = {
    "request": {"path": "/chat/completions", "body": {}},
    "response": {"status": 200, "content_type": "application/json", "body": {}},
}


class Upstream(BaseHTTPRequestHandler):
    """A real endpoint, which answers with ``answer`` and notes the paths of requests."""

    answer = b""
    kind = "application/json"
    paths: list[str]

    def do_POST(self) -> None:
        self.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", self.kind)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def upstream(answer: bytes, kind: str = "application/json") -> Iterator[tuple[str, list[str]]]:
    """Serve an endpoint; give its address, and the paths of its requests."""
    paths: list[str] = []
    handler = type("Handler", (Upstream,), {"answer": answer, "kind": kind, "paths": paths})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        background(partial(server.serve_forever, poll_interval=0.01))
        try:
            yield f"http://127.0.0.1:{server.server_port}", paths
        finally:
            server.shutdown()


def control(double: Emulator, method: str = "GET", **document: Any) -> httpx.Response:
    """Send a request to the route of the recording."""
    return httpx.request(
        method,
        f"{double.url}/_emulator/model/recording",
        json=document or None,
        headers={"Authorization": f"Bearer {double.token}"},
        timeout=60,
    )


def record(double: Emulator, url: str, key: str) -> None:
    """Record from an endpoint, in both forms."""
    end = {"url": url, "header": "X-Key", "key": key}
    assert 201 == control(double, "POST", upstreams={"openai": end, "gemini": end}).status_code


def ask(
    double: Emulator, path: str = "/model/v1/chat/completions", **fields: Any
) -> httpx.Response:
    """Send a prompt to the model."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    key = double.environment("model")["OPENAI_API_KEY"]
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(double.url + path, json=body, headers=headers, timeout=60)


@pytest.mark.parametrize("key", ['a"key', "a\\key", "a/key+=", "plain-key"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
def test_no_recording_has_the_key(double: Emulator, kind: str, key: str) -> None:
    """Whatever characters it has, and wherever it is: it is replaced, and the rest is kept."""
    answer = json.dumps({"text": f"Your key is {key}.", "password": "s3cret", "n": 1})
    sent = f"data: {answer}\n\n" if kind == "text/event-stream" else answer
    with upstream(sent.encode(), kind) as (url, _):
        record(double, url, key)
        passed_on = ask(double, user=f"with {key}", password="s3cret").text

    exchanges = control(double).json()["exchanges"]

    assert sent == passed_on
    assert key not in json.dumps(exchanges) + str(exchanges)
    assert json.dumps(key)[1:-1] not in str(exchanges)
    assert "s3cret" not in str(exchanges)
    assert "with ***" == exchanges[0]["request"]["body"]["user"]
    assert "Your key is ***." in str(exchanges[0]["response"])


def test_a_key_in_the_query_is_neither_sent_on_nor_recorded(double: Emulator) -> None:
    """A client of Gemini may send the double's key so."""
    path = "/model/v1beta/models/m:generateContent"
    with upstream(b"{}") as (url, paths):
        record(double, url, "the-key")
        ask(double, f"{path}?alt=json&key=s3cret", contents=[{"parts": [{"text": "hi"}]}])

    (exchange,) = control(double).json()["exchanges"]

    assert [f"{path.removeprefix('/model')}?alt=json"] == paths
    assert f"{path.removeprefix('/model')}?alt=json&key=***" == exchange["request"]["path"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"exchanges": 5}, "exchanges"),
        ({"exchanges": ["x"]}, "exchanges.0"),
        ({"exchanges": [GOOD, {}]}, "exchanges.1.request"),
        ({"exchanges": [{**GOOD, "request": {"path": 1, "body": {}}}]}, "exchanges.0.request.path"),
        ({"exchanges": [{**GOOD, "request": {"path": "/"}}]}, "exchanges.0.request.body"),
        *(
            ({"exchanges": [{**GOOD, "response": {**GOOD["response"], name: value}}]}, place)
            for name, value, place in (
                ("status", "ok", "exchanges.0.response.status"),
                ("status", 99, "exchanges.0.response.status"),
                ("content_type", "a\nb", "exchanges.0.response.content_type"),
                ("content_type", "\u4e00", "exchanges.0.response.content_type"),
                ("events", [1], "exchanges.0.response.events.0"),
            )
        ),
        (
            {"exchanges": [{**GOOD, "response": {"status": 200, "content_type": ""}}]},
            "neither body",
        ),
        ({"upstreams": []}, "upstreams"),
        ({"upstreams": {"other": {}}}, "upstreams.other"),
        ({"upstreams": {"openai": {"url": "h", "header": "a", "key": ""}}}, "upstreams.openai.url"),
        *(
            (
                {
                    "upstreams": {
                        "openai": {"url": "http://h", "header": "a", "key": "", name: "\n"}
                    }
                },
                f"upstreams.openai.{name}",
            )
            for name in ("url", "header", "key")
        ),
    ],
)
def test_a_malformed_recording_is_refused(
    double: Emulator, document: dict[str, Any], place: str
) -> None:
    """At once, with the place, and not when a request uses it."""
    response = control(double, "POST", **document)

    assert 400 == response.status_code
    assert place in response.text


def test_others_are_served_while_a_large_answer_is_recorded(
    double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its secrets are searched in a thread, piece by piece."""
    text = 'api_key = "s3cret"\n' * 20_000
    statuses = []

    def find(value: Any) -> Any:
        if value == {"text": text}:
            statuses.append(httpx.get(f"{double.url}/ping").status_code)
        return without_secrets_inside(value)

    monkeypatch.setattr("agentdouble.model.recording.without_secrets_inside", find)
    with upstream(json.dumps({"text": text}).encode()) as (url, _):
        record(double, url, "the-key")
        ask(double)
    recorded = control(double).json()["exchanges"]

    assert {"text": text.replace("s3cret", "***")} == recorded[0]["response"]["body"]
    assert [200] == statuses


def test_an_answer_that_is_too_large_is_not_recorded(
    double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed on, and an error says so where the recording is read."""
    monkeypatch.setattr("agentdouble.model.recording.LARGEST", 1000)
    with upstream(b'"' + b"x" * 2000 + b'"') as (url, _):
        record(double, url, "the-key")
        answer = ask(double)

    refused = control(double)

    assert 2002 == len(answer.content)
    assert (400, True) == (refused.status_code, "1,000 bytes" in refused.text)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/model/v1/chat/completions", {"n": 2, "nonsense": 1}),
        ("/model/v1/responses", {"input": "x", "previous_response_id": "resp_of_the_real_one"}),
        ("/model/v1/embeddings", {"input": "x"}),
        ("/model/v1beta/models/m:countTokens", {}),
        ("/model/v1/models/m:embedContent", {}),
    ],
)
def test_a_recording_has_what_no_script_can_do(
    double: Emulator, path: str, fields: dict[str, Any]
) -> None:
    """The real endpoint decides which fields and methods it has."""
    with upstream(b'{"from": "the real one"}') as (url, paths):
        record(double, url, "key")
        recorded = ask(double, path, **fields)
    exchanges = control(double).json()["exchanges"]
    control(double, "POST", exchanges=exchanges)

    assert {"from": "the real one"} == recorded.json() == ask(double, path, **fields).json()
    assert 1 == len(paths)
