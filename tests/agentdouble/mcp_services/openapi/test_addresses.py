"""The addresses at which a definition's operations are called."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi.definition import address_of
from tests.agentdouble.mcp_services.openapi.calling import Json, capture, openapi_3, swagger_2

VARIABLES = {
    "url": "https://{region}.example.com:{port}/v1/",
    "variables": {
        "region": {"default": "eu", "enum": ["eu", "us"]},
        "port": {"default": "443"},
    },
}


def address(document: Json, base_url: str | None = None) -> str:
    definition = openapi.load(document)
    return address_of(definition, definition.operations[0], base_url)


def refusal(*args: Any) -> str:
    with pytest.raises(DefinitionError) as raised:
        address(*args)
    return raised.value.reason


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            openapi_3(servers=[{"url": "https://a.example/v1/"}, {"url": "https://b.example"}]),
            "https://a.example/v1",
        ),
        (openapi_3({"servers": [{"url": "https://own.example"}]}), "https://own.example"),
        (openapi_3(servers=[VARIABLES]), "https://eu.example.com:443/v1"),
        (
            swagger_2(host="a.example", basePath="/v2", schemes=["http", "https"]),
            "https://a.example/v2",
        ),
    ],
)
def test_definition_contains_its_address(document: Json, expected: str) -> None:
    """Its first server, with its variables' defaults; or host and base path."""
    assert expected == address(document)


def test_path_server_applies_to_its_operations() -> None:
    """An operation's server takes precedence, and the document's comes last."""
    document = openapi_3(servers=[{"url": "https://all.example"}])
    document["paths"]["/echo"]["servers"] = [{"url": "https://path.example"}]

    assert "https://path.example" == address(document)


@pytest.mark.parametrize("document", [openapi_3(), openapi_3(servers=[{"url": "/v1"}])])
def test_missing_address_is_refused(document: Json) -> None:
    """When the server is created, not at the first call."""
    assert refusal(document).startswith("it does not say where the API is: give base_url")


@pytest.mark.parametrize("base_url", ["", "ftp://api.example"])
def test_base_url_is_validated(base_url: str) -> None:
    """It must be an http(s) URL with a host."""
    assert refusal(openapi_3(), base_url).startswith("it does not say where the API is")


def test_base_url_overrides_all_servers(api: str) -> None:
    """Including an operation's; its path precedes the operation's."""
    document = openapi_3(
        {"servers": [{"url": "http://own.invalid"}]}, servers=[{"url": "http://all.invalid"}]
    )

    assert "/base/v1/echo" == capture(document, f"{api}/base/v1/", {})["target"]


@pytest.mark.parametrize(
    ("path", "target"), [("/echo?kind=a", "/echo?kind=a&q=1"), ("/a b/é", "/a%20b/%C3%A9?q=1")]
)
def test_path_may_contain_a_query_or_fragment(api: str, path: str, target: str) -> None:
    """Some definitions use them to distinguish operations."""
    document = openapi_3(
        {"parameters": [{"name": "q", "in": "query", "schema": {}}]}, path=path, method="get"
    )

    assert target == capture(document, api, {"q": 1})["target"]


@pytest.mark.parametrize(
    ("path", "args", "target"),
    [
        ("/echo/id{id}.json", {"id": "7"}, "/echo/id7.json"),
        ("/echo/{a}-{b}", {"a": "x", "b": "y/z"}, "/echo/x-y%2Fz"),
    ],
)
def test_placeholder_may_be_part_of_a_segment(api: str, path: str, args: Json, target: str) -> None:
    """Or one of several, or repeated."""
    parameters = [{"name": name, "in": "path", "required": True, "schema": {}} for name in args]
    document = openapi_3({"parameters": parameters}, path=path, method="get")

    assert target == capture(document, api, args)["target"]
