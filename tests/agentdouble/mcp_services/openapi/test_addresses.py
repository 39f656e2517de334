"""Where the operations of a definition are called."""

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
def test_a_definition_says_where_it_is(document: Json, expected: str) -> None:
    """Its first server, with the defaults of its variables; or host and base path."""
    assert expected == address(document)


def test_the_server_of_a_path_is_for_its_operations() -> None:
    """An operation's own comes before it, the document's after it."""
    document = openapi_3(servers=[{"url": "https://all.example"}])
    document["paths"]["/echo"]["servers"] = [{"url": "https://path.example"}]

    assert "https://path.example" == address(document)


@pytest.mark.parametrize("document", [openapi_3(), openapi_3(servers=[{"url": "/v1"}])])
def test_an_address_that_is_not_known_is_asked_for(document: Json) -> None:
    """When the server is made, not at the first call."""
    assert refusal(document).startswith("it does not say where the API is: give base_url")


@pytest.mark.parametrize("base_url", ["", "ftp://api.example"])
def test_a_base_url_is_checked(base_url: str) -> None:
    """It is an http(s) URL with a host."""
    assert refusal(openapi_3(), base_url).startswith("it does not say where the API is")


def test_a_base_url_takes_the_place_of_all(api: str) -> None:
    """Of an operation's own too; its path comes before the operation's."""
    document = openapi_3(
        {"servers": [{"url": "http://own.invalid"}]}, servers=[{"url": "http://all.invalid"}]
    )

    assert "/base/v1/echo" == capture(document, f"{api}/base/v1/", {})["target"]


@pytest.mark.parametrize(
    ("path", "target"), [("/echo?kind=a", "/echo?kind=a&q=1"), ("/a b/é", "/a%20b/%C3%A9?q=1")]
)
def test_a_path_may_be_more_than_a_path(api: str, path: str, target: str) -> None:
    """Some definitions tell operations apart by a query or a fragment in it."""
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
def test_a_placeholder_may_be_a_part_of_a_segment(
    api: str, path: str, args: Json, target: str
) -> None:
    """Or several of them, or stand twice."""
    parameters = [{"name": name, "in": "path", "required": True, "schema": {}} for name in args]
    document = openapi_3({"parameters": parameters}, path=path, method="get")

    assert target == capture(document, api, args)["target"]
