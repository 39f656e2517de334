"""Every kind of body, on the wire."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.agentdouble.mcp_services.openapi.backend import PNG
from tests.agentdouble.mcp_services.openapi.calling import (
    Json,
    capture,
    openapi_3,
    refused,
    schema,
    swagger_2,
)

PNG_64 = base64.b64encode(PNG).decode()
PNG_LATIN = PNG.decode("latin-1")
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
NOT_BASE64 = 'is not base64. A file whose content is text is given as {"text": "..."}.'


def body(content: Json, **more: Any) -> Json:
    return openapi_3({"requestBody": {"content": content, **more}})


def form(media_type: str, properties: Json) -> Json:
    return body({media_type: {"schema": {"type": "object", "properties": properties}}})


@pytest.mark.parametrize("value", [{"a": [1, "é", None]}, None])
def test_json_is_sent_as_it_is_given(api: str, value: Any) -> None:
    """Any value, with its media type."""
    request = capture(body({"application/json": {"schema": {}}}), api, {"body": value})

    assert (value, "application/json") == (request["json"], request["headers"]["content-type"])


@pytest.mark.parametrize(
    ("media_types", "sent"),
    [
        (["application/xml", "application/json; charset=utf-8"], "application/json; charset=utf-8"),
        ([FORM, "application/vnd.api+json"], "application/vnd.api+json"),
        (["image/png", "text/plain"], "text/plain"),
    ],
)
def test_the_media_type_is_the_one_a_model_writes_best(
    api: str, media_types: list[str], sent: str
) -> None:
    """JSON before forms, forms before text, text before bytes."""
    document = body({media_type: {"schema": {}} for media_type in media_types})
    request = capture(document, api, {"body": {} if "text" not in sent else "x"})

    assert sent == request["headers"]["content-type"]


def test_a_body_that_is_required_is_required(api: str) -> None:
    """The schema of the tool says so."""
    document = body({"application/json": {"schema": {}}}, required=True)

    assert "The arguments are wrong: 'body' is required." == refused(document, api, {})


def test_text_is_sent_as_it_is(api: str) -> None:
    """In UTF-8."""
    request = capture(body({"text/plain": {"schema": {}}}), api, {"body": "<é/>"})

    assert "<é/>".encode().decode("latin-1") == request["body"]
    assert "text/plain" == request["headers"]["content-type"]


@pytest.mark.parametrize(
    ("value", "sent", "media_type"),
    [
        (PNG_64, PNG_LATIN, "application/octet-stream"),
        ({"base64": PNG_64, "media_type": "image/png"}, PNG_LATIN, "image/png"),
        ({"text": "plain"}, "plain", "application/octet-stream"),
    ],
)
def test_bytes_are_given_in_base64(api: str, value: Any, sent: str, media_type: str) -> None:
    """Or as text; the media type may be given too."""
    request = capture(body({"application/octet-stream": {}}), api, {"body": value})

    assert (sent, media_type) == (request["body"], request["headers"]["content-type"])


def test_what_is_not_base64_is_refused(api: str) -> None:
    """The message tells of the other way."""
    message = refused(body({"application/octet-stream": {}}), api, {"body": "no base64!"})

    assert f"Argument 'body' {NOT_BASE64}" == message


@pytest.mark.parametrize(
    ("value", "sent"),
    [("a b&c", "f=a%20b%26c"), (["a", "b"], "f=a&f=b"), ({"a": 1}, "f=%7B%22a%22%3A1%7D")],
)
def test_a_form_is_urlencoded(api: str, value: Any, sent: str) -> None:
    """Arrays are repeated and objects are JSON."""
    request = capture(form(FORM, {"f": {}}), api, {"body": {"f": value}})

    assert (sent, FORM) == (request["body"], request["headers"]["content-type"])


@pytest.mark.parametrize(
    ("written", "value", "parts"),
    [
        ({"type": "string"}, "é", [["f", "é"]]),
        ({"type": "array"}, ["a", "b"], [["f", "a"], ["f", "b"]]),
        ({"type": "object"}, {"a": 1}, [["f", '{"a":1}']]),
        (
            {"type": "string", "format": "binary"},
            {"text": "a,b", "filename": "t.csv"},
            [["f", ["t.csv", "text/csv", "a,b"]]],
        ),
    ],
)
def test_a_form_has_parts(api: str, written: Json, value: Any, parts: list[Any]) -> None:
    """Texts, JSON and files, several of each."""
    assert parts == capture(form(MULTIPART, {"f": written}), api, {"body": {"f": value}})["parts"]


def test_openapi_3_1_writes_files_otherwise(api: str) -> None:
    """A media type without an encoding is a file, one with base64 is text."""
    document = form(
        MULTIPART,
        {
            "file": {"contentMediaType": "image/png"},
            "text": {
                "type": "string",
                "contentMediaType": "image/png",
                "contentEncoding": "base64",
            },
        },
    )
    document["openapi"] = "3.1.0"

    request = capture(document, api, {"body": {"file": PNG_64, "text": PNG_64}})

    assert [
        ["file", ["file", "application/octet-stream", PNG_LATIN]],
        ["text", PNG_64],
    ] == request["parts"]


def test_a_file_name_cannot_break_out(api: str) -> None:
    """Quotes and line breaks of it are encoded."""
    document = form(MULTIPART, {"f": {"type": "string", "format": "binary"}})
    arguments = {"body": {"f": {"text": "x", "filename": 'a"\r\nX-Evil: 1'}}}

    (part,) = capture(document, api, arguments)["parts"]

    assert ["f", ["a%22%0D%0AX-Evil: 1", "application/octet-stream", "x"]] == part


@pytest.mark.parametrize(
    ("consumes", "files", "kind"),
    [(None, False, FORM), ([MULTIPART], False, MULTIPART), (None, True, MULTIPART)],
)
def test_the_fields_of_swagger_2_are_arguments(
    api: str, consumes: list[str] | None, files: bool, kind: str
) -> None:
    """Each of its own; a file makes the form multipart."""
    parameters: list[Json] = [
        {"name": "name", "in": "formData", "type": "string", "required": True},
        {
            "name": "tags",
            "in": "formData",
            "type": "array",
            "items": {"type": "string"},
            "collectionFormat": "multi",
        },
        {"name": "ids", "in": "formData", "type": "array", "items": {"type": "integer"}},
    ]
    arguments: Json = {"name": "a b", "tags": ["x", "y"], "ids": [1, 2]}
    parts: list[Any] = [["name", "a b"], ["tags", "x"], ["tags", "y"], ["ids", "1,2"]]
    if files:
        parameters.append({"name": "file", "in": "formData", "type": "file"})
        arguments["file"] = {"text": "hello"}
        parts.append(["file", ["file", "application/octet-stream", "hello"]])
    document = swagger_2({"parameters": parameters, **({"consumes": consumes} if consumes else {})})

    request = capture(document, api, arguments)

    assert kind == request["headers"]["content-type"].partition(";")[0]
    if kind == MULTIPART:
        assert parts == request["parts"]
    else:
        assert "name=a%20b&tags=x&tags=y&ids=1,2" == request["body"]


def test_the_body_of_swagger_2_is_json(api: str) -> None:
    """Whatever the parameter is called, the argument is ``body``."""
    parameter = {"name": "pet", "in": "body", "required": True, "schema": {"type": "object"}}

    request = capture(swagger_2({"parameters": [parameter]}), api, {"body": {"a": 1}})

    assert ({"a": 1}, "application/json") == (request["json"], request["headers"]["content-type"])


@pytest.mark.parametrize("method", ["get", "delete", "options", "put", "patch"])
def test_every_method_is_sent(api: str, method: str) -> None:
    """In capitals."""
    assert method.upper() == capture(openapi_3(method=method), api, {})["method"]


def test_arguments_of_one_name_have_their_places(api: str) -> None:
    """Each keeps its name on the wire."""
    document = openapi_3(
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {}},
                {"name": "id", "in": "query", "schema": {}},
                {"name": "id", "in": "header", "schema": {}},
                {"name": "id_query", "in": "query", "schema": {}},
                {"name": "body", "in": "query", "schema": {}},
            ],
            "requestBody": {"content": {"application/json": {"schema": {}}}},
        },
        path="/echo/{id}",
    )
    arguments = {
        "id_path": 1,
        "id_query_2": 2,
        "id_header": 3,
        "id_query": 4,
        "body_query": 5,
        "body_body": {"six": 6},
    }

    request = capture(document, api, arguments)

    assert "/echo/1?id=2&id_query=4&body=5" == request["target"]
    assert ("3", {"six": 6}) == (request["headers"]["id"], request["json"])


def test_headers_that_are_the_connections_are_no_arguments() -> None:
    """Nor those that follow from the definition or the credential."""
    names = ["Accept", "content-type", "Authorization", "Host", "Transfer-Encoding", "X-Own"]
    document = openapi_3({"parameters": [{"name": n, "in": "header", "schema": {}} for n in names]})

    assert ["X-Own"] == list(schema(document)["properties"])


@pytest.mark.parametrize(
    ("responses", "accept"),
    [
        ({"200": {"description": "", "content": {"text/csv": {}}}}, "text/csv, */*;q=0.1"),
        ({"default": {"description": ""}}, "application/json, */*;q=0.1"),
    ],
)
def test_what_is_accepted_is_what_succeeds(api: str, responses: Json, accept: str) -> None:
    """The media types of the answers, then anything."""
    assert accept == capture(openapi_3({"responses": responses}), api, {})["headers"]["accept"]
