"""Parameters in every style, on the wire, and the addresses of operations."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi.definition import address_of
from tests.agentdouble.mcp_services.openapi.calling import (
    Json,
    capture,
    openapi_3,
    refused,
    swagger_2,
)

ARRAY = ["blue", "black, brown"]
OBJECT = {"R": 100, "G": "a&b"}


def parameter(where: str, style: str | None, explode: bool | None, **more: Any) -> dict[str, Any]:
    parameter: dict[str, Any] = {"name": "color", "in": where, "schema": {}, **more}
    if where == "path":
        parameter["required"] = True
    if style is not None:
        parameter["style"] = style
    if explode is not None:
        parameter["explode"] = explode
    return parameter


def target(api: str, where: str, value: Any, written: dict[str, Any]) -> str:
    path = "/echo/{color}" if where == "path" else "/echo"
    document = openapi_3({"parameters": [written]}, path=path, method="get")
    target: str = capture(document, api, {"color": value})["target"]
    return target.removeprefix("/echo").lstrip("/?")


@pytest.mark.parametrize(
    ("where", "style", "explode", "value", "expected"),
    [
        ("path", None, None, "a/b c", "a%2Fb%20c"),
        ("path", None, None, ARRAY, "blue,black%2C%20brown"),
        ("path", "simple", True, OBJECT, "R=100,G=a%26b"),
        ("query", None, None, "a+b&c=d #é", "color=a%2Bb%26c%3Dd%20%23%C3%A9"),
        ("query", None, None, True, "color=true"),
        ("query", None, None, ARRAY, "color=blue&color=black%2C%20brown"),
        ("query", None, None, OBJECT, "R=100&G=a%26b"),
        ("query", "form", False, ARRAY, "color=blue,black%2C%20brown"),
        ("query", "spaceDelimited", False, ARRAY, "color=blue%20black%2C%20brown"),
        ("query", "pipeDelimited", False, ARRAY, "color=blue%7Cblack%2C%20brown"),
        ("query", "deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=a%26b"),
    ],
)
def test_path_has_one_style_and_query_four(
    api: str, where: str, style: str | None, explode: bool | None, value: Any, expected: str
) -> None:
    """Simple; or form, spaceDelimited, pipeDelimited and deepObject, as in RFC 6570."""
    assert expected == target(api, where, value, parameter(where, style, explode))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("query", "color=%7B%22a%22%3A%5B1%2C%22b%22%5D%7D"),
        ("path", "%7B%22a%22%3A%5B1%2C%22b%22%5D%7D"),
    ],
)
def test_parameter_with_content_is_json(api: str, where: str, expected: str) -> None:
    """Its media type decides, not a style."""
    written = parameter(where, None, None, content={"application/json": {"schema": {}}})
    del written["schema"]

    assert expected == target(api, where, {"a": [1, "b"]}, written)


@pytest.mark.parametrize(
    ("where", "explode", "value", "expected"),
    [
        ("header", None, "blue sky", "blue sky"),
        ("header", None, ARRAY, "blue,black, brown"),
        ("header", True, OBJECT, "R=100,G=a&b"),
        ("cookie", None, "a;b c\r\nx", "color=a%3Bb%20c%0D%0Ax"),
        ("cookie", True, ["a", "b"], "color=a; color=b"),
    ],
)
def test_header_style_is_simple_and_cookie_style_form(
    api: str, where: str, explode: bool | None, value: Any, expected: str
) -> None:
    """Only what a cookie cannot contain is encoded; its exploded values are separate cookies."""
    document = openapi_3({"parameters": [parameter(where, None, explode)]})
    headers = capture(document, api, {"color": value})["headers"]

    assert expected == headers["color" if where == "header" else "cookie"]


@pytest.mark.parametrize(
    ("collection", "expected"),
    [("csv", "color=1,2"), ("ssv", "color=1%202"), ("multi", "color=1&color=2")],
)
def test_swagger_2_has_collection_formats(api: str, collection: str | None, expected: str) -> None:
    """Each in a query."""
    written = {"name": "color", "in": "query", "type": "array", "items": {"type": "integer"}}
    if collection:
        written["collectionFormat"] = collection
    document = swagger_2({"parameters": [written]}, method="get")

    assert f"/echo?{expected}" == capture(document, api, {"color": [1, 2]})["target"]


@pytest.mark.parametrize(
    "value", ["..", ".", "", "../x", "a/../b", "..\\x", "%2e%2e", "%2E%2e/x", "/..", "a/."]
)
def test_path_traversal_is_refused(api: str, value: str) -> None:
    """In any encoding; an empty part is refused too."""
    document = openapi_3({"parameters": [parameter("path", None, None)]}, path="/echo/{color}")

    assert "color" in refused(document, api, {"color": value})


@pytest.mark.parametrize(("value", "expected"), [("a/b", "a%2Fb"), ("100%", "100%25")])
def test_path_value_stays_in_its_segment(api: str, value: str, expected: str) -> None:
    """No value adds a segment, a query or a fragment."""
    assert expected == target(api, "path", value, parameter("path", None, None))


def test_header_with_line_breaks_is_refused(api: str) -> None:
    """The message names the argument."""
    document = openapi_3({"parameters": [parameter("header", None, None)]})

    assert (
        "Argument 'color': a header cannot have line breaks or other control characters."
        == refused(document, api, {"color": "a\r\nX-Evil: 1"})
    )


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


@pytest.mark.parametrize(
    ("path", "value", "target"),
    [
        ("/echo?x={q}", "a&b", "/echo?x=a%26b"),
        ("/echo?x={q}&y=1", "", "/echo?x=&y=1"),
        ("/echo?x={q}", "..", "/echo?x=.."),
        ("/echo/{q}?x={q}", "a", "/echo/a?x=a"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_placeholder_in_the_query_of_a_path_is_filled(
    api: str, path: str, value: str, target: str, declared: bool
) -> None:
    """As the path's are, but it may be empty there."""
    written = {"name": "q", "in": "path", "required": True, "schema": {}}
    document = openapi_3({"parameters": [written] if declared else []}, path=path)

    assert target == capture(document, api, {"q": value})["target"]


def test_placeholder_in_a_fragment_is_no_argument(api: str) -> None:
    """It is not sent."""
    assert "/echo" == capture(openapi_3(path="/echo#{q}"), api, {})["target"]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ({"default": 8443}, "https://h:8443/v1"),
        ({"default": "443"}, "https://h:443/v1"),
        ({"enum": ["1", "2"]}, None),
        ({"default": None}, None),
        (None, None),
    ],
)
def test_default_of_a_variable_may_be_a_number(variable: Any, expected: str | None) -> None:
    """YAML writes it as one; a variable without a default is refused."""
    server = {"url": "https://h:{v}/v1", "variables": {"v": variable}}
    document = openapi_3(servers=[server])

    if expected:
        assert expected == address(document)
    else:
        assert "give base_url" in refusal(document)


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "Https"])
def test_certificate_is_verified(scheme: str) -> None:
    """However the scheme is written."""
    with Emulator(tls=True) as double:
        url = double.url.replace("https", scheme)

        assert "The API cannot be reached." == refused(
            openapi_3(path="/ping", method="get"), url, {}
        )


@pytest.mark.parametrize("value", [None, [], {}])
@pytest.mark.parametrize("explode", [True, False])
@pytest.mark.parametrize("where", ["query", "header", "cookie"])
def test_undefined_values_are_not_sent(api: str, value: Any, explode: bool, where: str) -> None:
    """RFC 6570: an empty list and an empty object are undefined; an empty text is not."""
    document = openapi_3({"parameters": [parameter(where, None, explode)]})

    request = capture(document, api, {"color": value})
    empty = capture(document, api, {"color": ""})

    assert "color" not in str(request)
    assert "color" in str(empty)


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize("value", [None, [], {}])
@pytest.mark.parametrize("explode", [True, False])
def test_undefined_part_of_a_path_is_refused(
    api: str, style: str, value: Any, explode: bool
) -> None:
    document = openapi_3({"parameters": [parameter("path", style, explode)]}, path="/echo/{color}")

    assert "cannot be empty" in refused(document, api, {"color": value})


@pytest.mark.parametrize(
    ("value", "explode", "expected"),
    [
        ("", False, ";color"),
        (["a", ""], True, ";color=a;color"),
        ({"a": "", "b": 1}, True, ";a;b=1"),
        (["", "b"], False, ";color=,b"),
    ],
)
def test_empty_text_of_a_matrix_has_no_equals_sign(
    api: str, value: Any, explode: bool, expected: str
) -> None:
    """RFC 6570, 3.2.7."""
    assert expected == target(api, "path", value, parameter("path", "matrix", explode))


def test_all_cookies_are_in_one_header(api: str) -> None:
    """Parameters, the header named Cookie, and the credential."""
    document = openapi_3(
        {
            "parameters": [
                {"name": "Cookie", "in": "header", "schema": {}},
                {"name": "c", "in": "cookie", "schema": {}},
            ]
        }
    )
    auth = openapi.ApiKey("k", "key", "cookie")

    request = capture(document, api, {"Cookie": "a=1; b=2", "c": "3"}, auth=auth)

    assert "a=1; b=2; c=3; key=k" == request["headers"]["cookie"]


@pytest.mark.parametrize("path", ["echo", ".evil.example/", "@evil.example/", ":1/", "{q}", ""])
def test_path_without_a_slash_is_refused(path: str) -> None:
    """After the base URL it would lead to another host, with the service's credential."""
    with pytest.raises(DefinitionError, match="does not begin with a slash"):
        openapi.load(openapi_3(path=path))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("$Version!#&'*+^`|~", "$Version!#&'*+^`|~"),
        ("__Host-sid.1", "__Host-sid.1"),
        ("a[b] c;=", "a%5Bb%5D%20c%3B%3D"),
    ],
)
def test_name_of_a_cookie_is_as_written(api: str, name: str, expected: str) -> None:
    """RFC 6265: a token; only what is none is encoded. So is the name of a key."""
    document = openapi_3({"parameters": [{"name": name, "in": "cookie", "schema": {}}]})

    for arguments, auth in (({name: "v"}, None), ({}, openapi.ApiKey("v", name, "cookie"))):
        headers = capture(document, api, arguments, auth=auth)["headers"]
        assert f"{expected}=v" == headers["cookie"]
