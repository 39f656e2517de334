from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest

from agentdouble import SimpleApp
from doublecheck import AsyncPlatform, Platform, Secret, Target
from doublecheck.client.doubles import serving_double
from doublecheck.errors import RefusedError, UnreachableError
from doublecheck.results import Exchange
from doublecheck.target.facts import variable
from doublecheck.wire import calls
from doublecheck.wire.calls import Request, refuse
from doublecheck.wire.exchanges import curl, redacted
from doublecheck.wire.request_log import BODY_LIMIT, KEPT
from tests.ports import handled

pytestmark = pytest.mark.smoke


KEY = "key-of-nobody-else"


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    app = SimpleApp("echo")

    @app.entrypoint
    async def entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> str:
        return f"{payload['prompt']}!"

    with serving_double(app, api_key=KEY) as target:
        yield target


@pytest.fixture
def platform(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        yield platform


def test_a_request_and_its_answer_are_recorded(platform: Platform) -> None:
    platform.invoke("hello")

    (exchange,) = platform.exchanges
    assert ("POST", f"{platform.url}/invoke") == (exchange.request.method, exchange.request.url)
    assert b'{"prompt": "hello"}' == exchange.request.content
    assert (200, b'"hello!"', None) == (exchange.status, exchange.body, exchange.error)
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.elapsed_s > 0


def test_a_missing_answer_is_recorded_with_its_reason() -> None:
    with Platform(Target("http://127.0.0.1:1")) as platform:
        with pytest.raises(UnreachableError):
            platform.ping()

        (exchange,) = platform.exchanges
    assert (None, b"") == (exchange.status, exchange.body)
    assert (exchange.error or "").startswith("ConnectError: ")


def test_an_interrupted_request_is_marked() -> None:
    async def interrupted(url: str) -> Exchange:
        async with AsyncPlatform(Target(url)) as platform:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(platform.ping(), 0.05)
            return platform.exchanges[-1]

    with socket.create_server(("127.0.0.1", 0)) as mute:
        exchange = asyncio.run(interrupted(f"http://127.0.0.1:{mute.getsockname()[1]}"))

    assert (None, "it was interrupted") == (exchange.status, exchange.error)


def test_only_the_last_exchanges_are_kept(platform: Platform) -> None:
    """Long bodies are cut."""
    for _ in range(KEPT):
        platform.ping()
    platform.invoke("x" * BODY_LIMIT)

    last = platform.exchanges[-1]
    assert (KEPT, "POST") == (len(platform.exchanges), last.request.method)
    assert (BODY_LIMIT, BODY_LIMIT) == (len(last.request.content), len(last.body))
    assert (True, True) == (last.request_cut, last.body_cut)
    platform.exchanges.clear()
    assert [] == [*platform.exchanges]


STREAM = SimpleApp("stream")


@STREAM.entrypoint
async def _stream(payload: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[str]:
    yield "one"
    yield "two"


@pytest.fixture(scope="module")
def streaming() -> Iterator[Target]:
    with serving_double(STREAM) as target:
        yield target


def test_a_stream_is_recorded_as_far_as_it_was_read(streaming: Target) -> None:
    """This includes a stream that is still open."""
    with Platform(streaming) as platform:
        events = platform.stream("")
        next(events)
        under_way = platform.exchanges[-1]
        assert (200, None) == (under_way.status, under_way.error)
        assert under_way.body.startswith(b"data: one")
        assert 1 == len(list(events))

        assert b"data: one\n\ndata: two\n\n" == platform.exchanges[-1].body


SECRETS = {
    "header": {"headers": {"Authorization": "Bearer s3cret"}},
    "signed": {"headers": {"Authorization": "HMAC-SHA256 Credential=s3cret, Signature=s3cret"}},
    "session token": {"headers": {"X-Security-Token": "s3cret"}},
    "another key": {"headers": {"X-My-Api-Key": "s3cret"}},
    "endpoint": {"url": "http://h/v1?faasInstanceName=a&Authorization=s3cret&x=1"},
    "json": {"content": b'{"password": "s3cret", "a": {"ApiKey":"s3cret"}}'},
    "json in json": {"content": b'{"Payload": "{\\"secret_key\\": \\"s3cret\\"}"}'},
    "endpoint in json": {"content": b'{"Endpoint": "http://h/?a=1\\u0026Authorization=s3cret"}'},
    "access record": {"content": b'{"Authorization": "Bearer s3cret"}'},
}


@pytest.mark.parametrize("values", SECRETS.values(), ids=SECRETS)
def test_secrets_are_redacted(values: dict[str, Any]) -> None:
    """They may be in URLs, headers and bodies of requests and answers."""
    content = values.get("content", b"")
    request = Request(
        "POST", values.get("url", "http://h/"), values.get("headers", {}), content=content
    )
    exchange = Exchange(request, 200, values.get("headers", {}), content, error=request.url)

    text = redacted(exchange)

    everything = (text.request.url, text.request.headers, text.request.content)
    assert "s3cret" not in repr((*everything, text.headers, text.body, text.error))
    assert "s3cret" not in curl(exchange)


def test_other_text_is_not_redacted() -> None:
    request = Request("POST", "http://h/?a=1", {"user_id": "u"}, content=b'\xff\xfe"a": 1')
    exchange = Exchange(request, 200, {"content-type": "text/plain"}, "Grüße, tokens: 3".encode())

    assert exchange == redacted(exchange)


REQUESTS = {
    "get": Request("GET", "/ping?a=1&b=it's"),
    "json": Request(
        "POST",
        "/invoke",
        {"Content-Type": "application/json"},
        b'{"prompt": "it\'s $HOME `x` \\"q\\"\\n\xc3\xbc"}',
    ),
    "put": Request("PUT", "/invoke", {"X-Empty": "", "user_id": "u 1"}, b"@file"),
    "delete": Request("DELETE", "/ping"),
}


@pytest.fixture(scope="module")
def mirror() -> Iterator[str]:
    """The URL of a server that returns the request it received."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            received = [self.command, self.path, dict(self.headers), content.hex()]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(received).encode())

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 (http.server's names)

    with handled(Handler) as url:
        yield url


@pytest.mark.needs("curl")
@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_the_curl_command_repeats_the_request(sent: Request, mirror: str) -> None:
    """The key comes from the environment."""
    target = Target(mirror, api_key=Secret(KEY))
    request = calls.request(
        target, sent.method, sent.url, headers=sent.headers, content=sent.content
    )
    with Platform(target) as platform:
        expected = platform.send(request).json()
        line = curl(platform.exchanges[-1])

    again = subprocess.run(
        ["sh", "-c", line],
        env={**os.environ, variable("api_key"): KEY},
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )

    assert KEY not in line
    assert _essential(expected) == _essential(json.loads(again.stdout))


def _essential(received: list[Any]) -> list[Any]:
    """Return the request without headers that vary between clients."""
    method, path, headers, content = received
    own = ("accept", "accept-encoding", "connection", "user-agent")
    others = {name.lower(): value for name, value in headers.items() if name.lower() not in own}
    return [method, path, others, content]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request("POST", "http://h/", {"authorization": "HMAC-SHA256 Credential=x"}), "signed"),
        (Request("GET", "http://h/v1?Authorization=x"), "session token"),
    ],
)
def test_requests_that_curl_cannot_repeat_have_a_comment(request_: Request, reason: str) -> None:
    """Pasting it does nothing."""
    line = curl(Exchange(request_))

    assert line.startswith("# ")
    assert reason in line
    assert 1 == len(line.splitlines())


GATEWAY = "<html>\r\n<head><title>502 Bad\r\nGateway</title></head><body>...</body></html>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (GATEWAY, "a page, '502 Bad Gateway'"),
        ('{"detail": "Nobody <html><title>here</title>."}', "Nobody <html><title>here</title>"),
        ('{"jsonrpc": "2.0", "error": {"code": -32600, "message": "No key."}}', "No key"),
        (
            '{"error": {"message": 3}, "detail": ["a"]}',
            '{"error": {"message": 3}, "detail": ["a"]}',
        ),
        ("it broke", "it broke"),
        ("", "an empty body"),
    ],
)
def test_a_refusal_quotes_the_answer(body: str, message: str) -> None:
    """A gateway's page is quoted by its title; the error has all of it."""
    request = httpx.Request("GET", "http://127.0.0.1/ping")

    with pytest.raises(RefusedError) as caught:
        refuse(httpx.Response(502, text=body, request=request))

    assert f"GET http://127.0.0.1/ping returned HTTP 502: {message}" == str(caught.value)
    assert body == caught.value.body
