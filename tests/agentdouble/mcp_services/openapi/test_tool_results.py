"""Results of calls: JSON, text, bytes, and every failure of an API."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import mcp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentdouble.mcp_services import openapi
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread
from tests import ports
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.mcp_services.openapi.backend import PNG
from tests.agentdouble.mcp_services.openapi.calling import (
    ANSWERS,
    call,
    capture,
    openapi_3,
    refused,
    text,
)


def get(path: str, *names: str) -> dict[str, Any]:
    """Return a document with a path operation and these query parameters."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "schema": {}} for name in names
    ]
    if "{status}" in path:
        parameters.append({"name": "status", "in": "path", "required": True, "schema": {}})
    return openapi_3({"parameters": parameters}, path=path, method="get")


TYPED = get("/typed", "text", "times", "type", "hex")
REFUSE = get("/refuse/{status}", "body")


def test_object_is_structured_and_text(api: str) -> None:
    """Structured content for programs, the same as text for a model."""
    result = call(
        TYPED, api, arguments={"text": '{"a": [1, 2.5, null]}', "type": "application/json"}
    )

    assert {"a": [1, 2.5, None]} == result.structured_content
    assert '{"a": [1, 2.5, null]}' == text(result)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        ("[1, 2]", "application/problem+json"),
        ("null", "application/problem+json"),
        ('{"a": "\\ud800"}', "application/json"),
        ('{"a":' * 300 + "1" + "}" * 300, "application/json"),
    ],
    ids=["list", "null", "half a character", "deep"],
)
def test_json_that_cannot_be_structured_is_text(api: str, body: str, media_type: str) -> None:
    """Structured content must be an object until 2026-07-28, and one that can be forwarded."""
    result = call(TYPED, api, arguments={"text": body, "type": media_type})

    assert (body, None, False) == (text(result), result.structured_content, result.is_error)


@pytest.mark.parametrize(
    "body",
    [
        *("{nothing", "NaN", '{"a": -Infinity}', '{"a": 1}\n{"a": 2}\n', ')]}\'\n{"a": 1}'),
        *("for(;;);[1]", "callback([1])", "<html>not JSON</html>", '{"a": 1e999}', "x" * 5000),
    ],
)
def test_answer_that_is_not_json_is_text(api: str, body: str) -> None:
    """Whatever it says it is: the whole text, because a model can still read it."""
    result = call(TYPED, api, arguments={"text": body, "type": "application/json"})

    assert (body, None, False) == (text(result), result.structured_content, result.is_error)


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]
)
@pytest.mark.parametrize("media_type", ["application/json", "application/problem+json"])
def test_json_may_be_in_any_unicode_encoding(api: str, encoding: str, media_type: str) -> None:
    """With a byte order mark or without (RFC 4627, 3), whatever charset is given."""
    given = {"hex": '{"name": "é"}'.encode(encoding).hex(), "type": media_type}
    result = call(TYPED, api, arguments=given)

    assert ({"name": "é"}, '{"name": "é"}') == (result.structured_content, text(result))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_is_not_a_part_of_a_text(api: str, encoding: str) -> None:
    """It comes before the charset, as browsers do it."""
    for media_type in ("text/csv", "text/csv; charset=latin-1"):
        given = {"hex": "a;é".encode(encoding).hex(), "type": media_type}
        assert "a;é" == text(call(TYPED, api, arguments=given))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"text": "hello", "type": "text/plain"}, "hello"),
        ({"hex": "e9", "type": "text/plain; charset=latin-1"}, "é"),
        ({"text": "no type"}, "no type"),
    ],
)
def test_text_is_text(api: str, arguments: dict[str, Any], expected: str) -> None:
    """In its charset, if Python knows it."""
    assert expected == text(call(TYPED, api, arguments=arguments))


def test_images_have_their_own_content(api: str) -> None:
    """With MCP's type for them."""
    result = call(TYPED, api, arguments={"hex": PNG.hex(), "type": "image/png"})

    (block,) = result.model_dump(by_alias=True, exclude_none=True)["content"]
    data = base64.b64encode(PNG).decode()
    assert {"type": "image", "mimeType": "image/png", "data": data} == block


@pytest.mark.parametrize("media_type", ["application/octet-stream", None])
def test_other_bytes_are_a_resource(api: str, media_type: str | None) -> None:
    """In base64, with a name that reveals nothing about the API."""
    arguments = {"hex": PNG.hex(), **({"type": media_type} if media_type else {})}
    result = call(TYPED, api, arguments=arguments)

    (block,) = result.model_dump(by_alias=True, exclude_none=True)["content"]
    assert {
        "uri": "tool://op/answer",
        "mimeType": media_type or "application/octet-stream",
        "blob": base64.b64encode(PNG).decode(),
    } == block["resource"]


@pytest.mark.parametrize(
    ("status", "expected"), [(204, "HTTP 204 No Content: an answer without a body")]
)
def test_response_without_a_body_reports_success(api: str, status: int, expected: str) -> None:
    result = call(REFUSE, api, arguments={"status": str(status)})

    assert (expected, False) == (text(result), result.is_error)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, "no such pet", "HTTP 404: no such pet"),
        (500, "", "HTTP 500: Internal Server Error"),
        (400, "x" * 5000, f"HTTP 400: {'x' * 4000}... (5000 characters)"),
    ],
)
def test_error_status_is_a_tool_error(api: str, status: int, body: str, expected: str) -> None:
    """With status and body, which is truncated."""
    assert expected == refused(REFUSE, api, {"status": str(status), "body": body})


def test_redirect_to_the_same_host_is_followed(api: str) -> None:
    """Many APIs redirect to a trailing slash."""
    document = get("/redirect", "to", "status")

    assert "/echo?a=1" == capture(document, api, {"to": "/echo?a=1", "status": "307"})["target"]


def test_redirect_to_another_host_is_not_followed(api: str) -> None:
    """The credential is for the API alone, and the target is not shown."""
    target = "http://other.invalid/secret-place"

    message = refused(get("/redirect", "to", "status"), api, {"to": target, "status": "302"})

    assert "HTTP 302: the API redirects to another host, which is not followed." == message


def test_hanging_api_times_out(api: str) -> None:
    """The error names the limit."""
    message = refused(get("/hang"), api, {}, timeout_s=0.2)

    assert "The API did not answer within 0.2 s." == message


def test_endless_response_is_cut(api: str) -> None:
    """After 8 MiB."""
    assert "The API's answer is larger than 8 MiB." == refused(get("/endless"), api, {})


def test_error_for_a_missing_api_hides_its_address(
    api: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the log names the server, for whoever runs the double, but not the rest of the URL."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

        message = refused(get("/"), f"http://user:hunter@127.0.0.1:{port}/secret", {})

    assert "The API cannot be reached." == message
    assert [f"The API at http://127.0.0.1:{port} cannot be reached."] == [
        record.message for record in caplog.records if record.levelname == "WARNING"
    ]


@pytest.fixture
def garbage(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that answers one connection with bytes, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(request.param)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    "garbage",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"],
    indirect=True,
)
def test_response_that_is_not_http_is_an_error(garbage: str) -> None:
    """Nothing, another protocol, and a truncated response."""
    message = refused(get("/"), garbage, {})

    assert "The API closed the connection, or its answer was not HTTP." == message


def test_unknown_tool_is_an_error(api: str) -> None:
    """The error names it, and the nearest one."""
    unlike, like = (call(TYPED, api, tool=name, arguments={}) for name in ("other", "opp"))

    assert (True, "There is no tool 'other'.") == (unlike.is_error, text(unlike))
    assert (True, "There is no tool 'opp'. Did you mean op?") == (like.is_error, text(like))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "The arguments are wrong: 'n' is required."),
        ({"n": 1, "m": 2}, "The arguments are wrong: 'm' is not an argument."),
        (
            {"limits": 1},
            (
                "The arguments are wrong: 'limit' is required; 'limits' is not an argument. "
                "Did you mean limit?"
            ),
        ),
    ],
)
def test_invalid_argument_is_named(api: str, arguments: dict[str, Any], expected: str) -> None:
    """Before the API is called."""
    name = "limit" if "limits" in arguments else "n"
    parameter = {"name": name, "in": "query", "required": True, "schema": {"type": "integer"}}

    assert expected == refused(openapi_3({"parameters": [parameter]}), api, arguments)


def serve(app: Starlette, port: int = 0) -> tuple[ServerThread, str]:
    listener = open_socket("127.0.0.1", port)
    server = ServerThread(app, listener)
    server.start()
    return server, address_of(listener)


def test_restarted_api_is_called_again() -> None:
    """The same server reports it missing, then calls it."""
    app = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("here"))])
    definition = openapi.load(openapi_3(path="/", method="get"))

    async def ask(port: int) -> list[str]:
        backend, url = serve(app, port)
        async with mcp.Client(openapi.server(definition, base_url=url)) as client:
            texts = [text(await client.call_tool("op", {}))]
            await anyio.to_thread.run_sync(backend.stop)
            texts.append(text(await client.call_tool("op", {})))
            again, _ = serve(app, port)
            texts.append(text(await client.call_tool("op", {})))
            await anyio.to_thread.run_sync(again.stop)
            return texts

    with ports.reserved() as port:
        assert ["here", "The API cannot be reached.", "here"] == anyio.run(ask, port)


def test_disconnecting_caller_cancels_the_request() -> None:
    requested, closed = threading.Event(), threading.Event()

    async def hang(request: Request) -> Response:
        requested.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        closed.set()
        return Response()

    backend, url = serve(Starlette(routes=[Route("/", hang)]))
    definition = openapi.load(openapi_3(path="/", method="get"))

    async def ask() -> None:
        async with mcp.Client(openapi.server(definition, base_url=url)) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "op", {})
                assert await anyio.to_thread.run_sync(requested.wait, TIMEOUT_S)
                tasks.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(closed.wait, TIMEOUT_S)

    anyio.run(ask)
    backend.stop()


@pytest.mark.parametrize(
    "media_type",
    [
        *("application/ndjson", "application/jsonl", "application/x-jsonlines"),
        *("application/json-seq", "application/geo+json-seq", "application/json5"),
        *("application/toml", "application/sql", "application/csv", "application/x-sh"),
        *("application/x-www-form-urlencoded", "application/vnd.apple.mpegurl"),
        *("multipart/mixed; boundary=x", "message/rfc822", "unknown"),
    ],
)
def test_answer_that_is_text_is_text(api: str, media_type: str) -> None:
    """Also of media types that nobody listed."""
    document = get("/typed", "hex", "type")
    text_ = "\x1e{}\r\n\ta=é\n"

    result = call(document, api, arguments={"hex": text_.encode().hex(), "type": media_type})
    assert text_ == text(result)


@pytest.mark.parametrize("content", ["00", "ff", "89504e47", "7b0d1a7d", "414200"])
@pytest.mark.parametrize("media_type", ["application/toml", "application/zip", "unknown"])
def test_answer_that_is_no_text_is_bytes(api: str, content: str, media_type: str) -> None:
    """It does not decode, or has characters that no text has."""
    given = {"hex": content, "type": media_type}

    (block,) = call(get("/typed", "hex", "type"), api, arguments=given).content

    assert "resource" == block.type


@pytest.mark.parametrize(
    "charset", ["undefined", "idna", "punycode", "rot13", "nothing", "ascii", "utf-7"]
)
@pytest.mark.parametrize("media_type", ["text/plain", "application/json", "application/toml"])
def test_wrong_charset_of_an_answer_is_not_believed(
    api: str, charset: str, media_type: str
) -> None:
    """Names of Python's codecs that are none of text, and those that the bytes are not in."""
    given = {"text": '{"a":"é"}', "type": f"{media_type}; charset={charset}"}

    result = call(get("/typed", "text", "type"), api, arguments=given)

    assert '{"a":"é"}' == text(result)


def test_cookies_of_an_answer_are_not_kept(api: str) -> None:
    """Another caller of the service would be logged in as the first."""
    document = openapi_3(path="/login", method="get")
    document["paths"]["/echo"] = {"get": {"operationId": "later", **ANSWERS}}

    async def ask() -> Any:
        server = openapi.server(openapi.load(document), base_url=api)
        async with mcp.Client(server) as client:
            await client.call_tool("op", {})
            return (await client.call_tool("later", {})).structured_content

    assert "cookie" not in anyio.run(ask)["headers"]


def test_redirection_keeps_the_arguments(api: str) -> None:
    """Headers, cookies and the body."""
    parameters = [
        {"name": "X-A", "in": "header", "schema": {}},
        {"name": "c", "in": "cookie", "schema": {}},
    ]
    body = {"content": {"application/json": {}}}
    document = openapi_3(
        {"parameters": parameters, "requestBody": body}, path="/redirect?status=307&to=/echo"
    )

    request = capture(document, api, {"X-A": "1", "c": "2", "body": {"three": 3}})

    assert ("1", "c=2") == (request["headers"]["x-a"], request["headers"]["cookie"])
    assert {"three": 3} == request["json"]
