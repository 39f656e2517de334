"""A service's credentials for its backend, and their secrecy."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi import ApiKey, Auth, Basic, Bearer
from tests.agentdouble.mcp_services.openapi.calling import (
    capture,
    openapi_3,
    refused,
    swagger_2,
)
from tests.ports import served

KEY = "k3y+/for=api"
SCHEMES = {
    "first": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "second": {"type": "apiKey", "in": "query", "name": "api_key"},
    "third": {"type": "apiKey", "in": "cookie", "name": "session"},
    "other": {"type": "http", "scheme": "bearer"},
}
DOCUMENT = openapi_3(
    {"parameters": [{"name": "q", "in": "query", "schema": {}}]},
    method="get",
    components={"securitySchemes": SCHEMES},
)


@pytest.mark.parametrize(
    ("auth", "header", "expected"),
    [
        (Bearer(KEY), "authorization", f"Bearer {KEY}"),
        (Basic("me", "pass"), "authorization", "Basic bWU6cGFzcw=="),
        (ApiKey(KEY), "x-key", KEY),
        (ApiKey(KEY, scheme="third"), "cookie", "session=k3y%2B%2Ffor%3Dapi"),
        (ApiKey(KEY, "X-Other"), "x-other", KEY),
    ],
)
def test_credential_is_sent(api: str, auth: Auth, header: str, expected: str) -> None:
    """As the definition says, or as given with the key."""
    assert expected == capture(DOCUMENT, api, {}, auth=auth)["headers"][header]


def test_key_may_be_in_the_query(api: str) -> None:
    """After the arguments, encoded."""
    auth = ApiKey(KEY, scheme="second")
    request = capture(DOCUMENT, api, {"q": "a b"}, auth=auth)

    assert "/echo?q=a%20b&api_key=k3y%2B%2Ffor%3Dapi" == request["target"]
    assert "/echo?api_key=k3y%2B%2Ffor%3Dapi" == capture(DOCUMENT, api, {}, auth=auth)["target"]


def test_swagger_2_declares_keys_too(api: str) -> None:
    """Under securityDefinitions."""
    document = swagger_2(securityDefinitions={"k": SCHEMES["first"]})

    assert KEY == capture(document, api, {}, auth=ApiKey(KEY))["headers"]["x-key"]


@pytest.mark.parametrize(
    ("security", "auth", "warning"),
    [
        (None, None, "1 of 1 operations need a credential, and the service has none: first (an"),
        ([{"first": []}], None, "first (an API key in the header: X-Key)."),
        ([{"first": [], "second": []}], ApiKey(KEY), "which is not sent: first (an API key in the"),
        ([{"other": []}], Basic("me", "pass"), "which is not sent: other (a bearer token)."),
        ([{"other": []}, {"login": []}], None, "other (a bearer token) or login (user and"),
        ([{"gone": []}], None, "gone (not declared)."),
    ],
)
def test_missing_credentials_are_a_warning(security: Any, auth: Auth | None, warning: str) -> None:
    """With what the definition wants; the caller finds out before the first call."""
    operation = {} if security is None else {"security": security}
    schemes = {**SCHEMES, "login": {"type": "http", "scheme": "basic"}}
    document = openapi_3(operation, components={"securitySchemes": schemes})

    (found,) = openapi.missing_credentials(openapi.load(document), auth)

    assert warning in found


@pytest.mark.parametrize(
    ("security", "auth"),
    [
        ([{"first": []}], ApiKey(KEY)),
        ([{"second": []}], ApiKey(KEY)),
        ([{"other": []}], Bearer(KEY)),
        ([{"login": []}, {"other": []}], Basic("me", "pass")),
        ([{}, {"first": []}], None),
        ([], None),
        (None, Bearer(KEY)),
    ],
)
def test_sufficient_credentials_are_no_warning(security: Any, auth: Auth | None) -> None:
    """One alternative is enough."""
    operation = {} if security is None else {"security": security}
    schemes = {**SCHEMES, "login": {"type": "http", "scheme": "basic"}}
    document = openapi_3(operation, components={"securitySchemes": schemes})

    assert [] == openapi.missing_credentials(openapi.load(document), auth)


def test_redirection_keeps_the_credential(api: str) -> None:
    """Within the same host."""
    document = openapi_3(path=f"/redirect?status=307&to={api}/echo", method="get")

    request = capture(document, api, {}, auth=Bearer(KEY))

    assert f"Bearer {KEY}" == request["headers"]["authorization"]


def test_swagger_2_may_declare_the_header_authorization(api: str) -> None:
    """OpenAPI 3 ignores such a parameter, as it says; a credential of the service comes first."""
    header = {"name": "Authorization", "in": "header", "required": True, "type": "string"}
    document = swagger_2({"parameters": [header]})
    given = {"Authorization": "Bearer mine"}

    assert "Bearer mine" == capture(document, api, given)["headers"]["authorization"]
    with_auth = capture(document, api, given, auth=Bearer(KEY))
    assert f"Bearer {KEY}" == with_auth["headers"]["authorization"]


def test_caller_cannot_replace_the_key(api: str) -> None:
    """A header declared as a parameter still carries the key."""
    document = openapi_3(
        {"parameters": [{"name": "X-Key", "in": "header", "schema": {}}]}, method="get"
    )

    request = capture(document, api, {"X-Key": "mine"}, auth=ApiKey(KEY, "X-Key"))

    assert KEY == request["headers"]["x-key"]


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        (ApiKey("two words"), "the API key must be printable ASCII without spaces"),
        (ApiKey(KEY, "X:\r\n"), "'X:\\r\\n' is not a valid header name for an API key"),
        (Bearer("a\r\nX: 1"), "the token must be printable ASCII without spaces"),
    ],
)
def test_unsendable_credential_is_refused(auth: Auth, message: str) -> None:
    """When the server is created."""
    with pytest.raises(DefinitionError) as raised:
        openapi.server(openapi.load(DOCUMENT), base_url="http://api.example", auth=auth)

    assert message in str(raised.value)


def test_definition_without_keys_needs_a_header_name() -> None:
    """The error says what to give."""
    definition = openapi.load(openapi_3())

    with pytest.raises(DefinitionError, match="Give the name of the header, query key or cookie"):
        openapi.server(definition, base_url="http://api.example", auth=ApiKey(KEY))


@pytest.mark.parametrize(
    "auth",
    [
        Bearer(KEY),
        Basic("me", KEY),
        ApiKey(KEY),
        ApiKey(KEY, scheme="second"),
        ApiKey(KEY, scheme="third"),
    ],
)
def test_no_secret_is_shown(api: str, auth: Auth, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in an error that repeats the request, nor in a log or a repr."""
    document = openapi_3(path="/who", method="get", components={"securitySchemes": SCHEMES})
    with caplog.at_level(logging.DEBUG):
        caplog.set_level(logging.WARNING, "httpcore")  # it logs every byte on purpose
        message = refused(document, api, {}, auth=auth)

    assert message.startswith("HTTP 401: ")
    assert "***" in message
    assert not any(
        secret in text
        for secret in (KEY, "k3y%2B%2Ffor%3Dapi", "bWU6azN5Ky9mb3I9YXBp")
        for text in (message, caplog.text, repr(auth))
    )


def test_caller_s_headers_are_not_forwarded(api: str) -> None:
    """Only arguments reach the API."""
    server = openapi.server(openapi.load(DOCUMENT), base_url=api)
    headers = {"Authorization": "Bearer mine", "X-Mine": "1", "Cookie": "mine=1"}

    async def ask(url: str) -> Any:
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return (await client.call_tool("op", {"q": "1"})).structured_content

    with served(server.streamable_http_app()) as url:
        result = anyio.run(ask, url)

    assert {
        "accept",
        "accept-encoding",
        "connection",
        "host",
        "user-agent",
    } == result["headers"].keys()
    assert "agentdouble" == result["headers"]["user-agent"]


@pytest.mark.parametrize(
    ("where", "name", "sent"),
    [
        ("header", "X-Key", "1"),
        ("query", "key", "/echo?other=1&key=k3y%2B%2Ffor%3Dapi"),
        ("query", "a[b]", "/echo?other=1&a%5Bb%5D=k3y%2B%2Ffor%3Dapi"),
        ("cookie", "key", "other=1; key=k3y%2B%2Ffor%3Dapi"),
    ],
)
def test_key_replaces_an_argument_of_its_name(api: str, where: str, name: str, sent: str) -> None:
    """In each place; the other arguments stay."""
    parameters = [{"name": each, "in": where, "schema": {}} for each in (name, "other")]
    schemes = {"s": {"type": "apiKey", "in": where, "name": name}}
    document = openapi_3({"parameters": parameters}, components={"securitySchemes": schemes})

    request = capture(document, api, {name: "mine", "other": "1"}, auth=ApiKey(KEY))

    headers = request["headers"]
    assert sent == {**headers, "query": request["target"], "header": headers.get("other")}[where]
    assert "mine" not in str(request)


def test_redirection_with_the_key_does_not_repeat_it(api: str) -> None:
    """A server that adds a slash to a path keeps the query."""
    document = openapi_3(path="/redirect?status=307&to=/echo/?api_key%3Dk", method="get")

    request = capture(document, api, {}, auth=ApiKey("k", "api_key", "query"))

    assert "/echo/?api_key=k" == request["target"]


@pytest.mark.parametrize(
    ("security", "sent"),
    [
        ([{"first": [], "second": []}, {"third": []}], "third"),
        ([{"login": [], "first": []}, {"second": []}], "second"),
        ([{"second": [], "third": []}], "second"),
        ([{"login": []}, {"third": []}], "third"),
        ([{}, {"second": []}], "second"),
    ],
)
def test_key_is_sent_where_it_is_enough(api: str, security: Any, sent: str) -> None:
    """As the scheme of an alternative that has no other."""
    schemes = {**SCHEMES, "login": {"type": "http", "scheme": "basic"}}
    document = openapi_3({"security": security}, components={"securitySchemes": schemes})

    received = capture(document, api, {}, auth=ApiKey(KEY))
    expected = capture(document, api, {}, auth=ApiKey(KEY, scheme=sent))

    assert expected == received


@pytest.mark.parametrize("where", ["header", "query", "cookie"])
def test_key_without_a_name_is_refused(where: str) -> None:
    """It would be sent as ``=key``."""
    schemes = {"s": {"type": "apiKey", "in": where}}
    definition = openapi.load(openapi_3(components={"securitySchemes": schemes}))

    with pytest.raises(DefinitionError, match="does not say how the API key"):
        openapi.server(definition, base_url="http://api.example", auth=ApiKey(KEY))
