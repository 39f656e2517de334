"""Parameters in every style, on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agentdouble.mcp_services.openapi.calling import capture, openapi_3, refused, swagger_2

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
    ("style", "explode", "value", "expected"),
    [
        (None, None, "a/b c", "a%2Fb%20c"),
        (None, None, ARRAY, "blue,black%2C%20brown"),
        ("simple", True, OBJECT, "R=100,G=a%26b"),
    ],
)
def test_path_style_is_simple(
    api: str, style: str | None, explode: bool | None, value: Any, expected: str
) -> None:
    """Exploded or not, as in RFC 6570."""
    assert expected == target(api, "path", value, parameter("path", style, explode))


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        (None, None, "a+b&c=d #é", "color=a%2Bb%26c%3Dd%20%23%C3%A9"),
        (None, None, True, "color=true"),
        (None, None, ARRAY, "color=blue&color=black%2C%20brown"),
        (None, None, OBJECT, "R=100&G=a%26b"),
        ("form", False, ARRAY, "color=blue,black%2C%20brown"),
        ("spaceDelimited", False, ARRAY, "color=blue%20black%2C%20brown"),
        ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%2C%20brown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=a%26b"),
    ],
)
def test_query_has_four_styles(
    api: str, style: str | None, explode: bool | None, value: Any, expected: str
) -> None:
    """Form, spaceDelimited, pipeDelimited and deepObject; null and empty values are omitted."""
    assert expected == target(api, "query", value, parameter("query", style, explode))


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
    ("explode", "value", "expected"),
    [
        (None, "blue sky", "blue sky"),
        (None, ARRAY, "blue,black, brown"),
        (True, OBJECT, "R=100,G=a&b"),
    ],
)
def test_header_style_is_simple(api: str, explode: bool | None, value: Any, expected: str) -> None:
    """A header is not percent-encoded."""
    document = openapi_3({"parameters": [parameter("header", None, explode)]})

    assert expected == capture(document, api, {"color": value})["headers"]["color"]


@pytest.mark.parametrize(
    ("explode", "value", "expected"),
    [(None, "a;b c\r\nx", "color=a%3Bb%20c%0D%0Ax"), (True, ["a", "b"], "color=a; color=b")],
)
def test_cookie_style_is_form(api: str, explode: bool | None, value: Any, expected: str) -> None:
    """Only invalid characters are encoded; exploded values become separate cookies."""
    document = openapi_3({"parameters": [parameter("cookie", None, explode)]})

    assert expected == capture(document, api, {"color": value})["headers"]["cookie"]


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
