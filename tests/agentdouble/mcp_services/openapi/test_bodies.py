"""Request bodies of every kind, on the wire."""

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
def test_json_body_is_sent_unchanged(api: str, value: Any) -> None:
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
def test_media_type_is_the_easiest_for_a_model(api: str, media_types: list[str], sent: str) -> None:
    """JSON before forms, forms before text, text before bytes."""
    document = body({media_type: {"schema": {}} for media_type in media_types})
    request = capture(document, api, {"body": {} if "text" not in sent else "x"})

    assert sent == request["headers"]["content-type"]


def test_required_body_is_required(api: str) -> None:
    """In the tool's schema."""
    document = body({"application/json": {"schema": {}}}, required=True)

    assert "The arguments are wrong: 'body' is required." == refused(document, api, {})


def test_text_body_is_sent_unchanged(api: str) -> None:
    """In UTF-8."""
    request = capture(body({"text/plain": {"schema": {}}}), api, {"body": "<é/>"})

    assert "<é/>".encode().decode("latin-1") == request["body"]
    assert "text/plain" == request["headers"]["content-type"]


@pytest.mark.parametrize(
    ("charset", "sent"),
    [("iso-8859-1", b"\xe9"), ("utf-16-le", b"\xe9\x00"), ("UTF-8", b"\xc3\xa9")],
)
def test_text_body_is_in_its_charset(api: str, charset: str, sent: bytes) -> None:
    """The one of its media type."""
    document = body({f"text/plain; charset={charset}": {}})

    assert sent.decode("latin-1") == capture(document, api, {"body": "é"})["body"]


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-8", "iso-8859-1"])
def test_json_body_is_in_its_charset(api: str, charset: str) -> None:
    document = body({f"application/json; charset={charset}": {}})

    length = capture(document, api, {"body": [1]})["headers"]["content-length"]

    assert len("[1]".encode(charset)) == int(length)


@pytest.mark.parametrize("charset", ["iso-8859-1", "nothing", "undefined"])
def test_text_that_its_charset_lacks_is_refused(api: str, charset: str) -> None:
    document = body({f"text/plain; charset={charset}": {}})

    assert "cannot be written in the charset" in refused(document, api, {"body": "€"})


@pytest.mark.parametrize(
    ("allowed", "file", "sent"),
    [
        ("image/png", {"filename": "a.csv"}, "image/png"),
        ("image/png, image/jpeg", {"filename": "a.jpg"}, "image/jpeg"),
        ("image/*", {"filename": "a.png"}, "image/png"),
        ("image/*", {"filename": "a.csv"}, "text/csv"),
        ("image/png", {"media_type": "image/webp"}, "image/webp"),
    ],
)
def test_part_has_an_allowed_media_type(api: str, allowed: str, file: Json, sent: str) -> None:
    """That of the file, if it is allowed; that of the caller in any case."""
    encoding = {"f": {"contentType": allowed}}
    written = {"schema": {"properties": {"f": {"format": "binary"}}}, "encoding": encoding}
    given = {"body": {"f": {"text": "x", "filename": "f", **file}}}

    ((_, (_, media_type, _)),) = capture(body({MULTIPART: written}), api, given)["parts"]

    assert sent == media_type


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


@pytest.mark.parametrize(
    ("written", "version"),
    [({"type": "string", "format": "byte"}, "3.0.3"), ({"contentEncoding": "base64"}, "3.1.0")],
)
def test_body_that_is_base64_by_its_schema_is_text(api: str, written: Json, version: str) -> None:
    """It is sent as given, as playlists' covers are."""
    document = body({"image/jpeg": {"schema": written}})
    document["openapi"] = version

    request = capture(document, api, {"body": PNG_64})

    assert (PNG_64, "image/jpeg") == (request["body"], request["headers"]["content-type"])


def test_invalid_base64_is_refused(api: str) -> None:
    """The message mentions the alternative."""
    message = refused(body({"application/octet-stream": {}}), api, {"body": "no base64!"})

    assert f"Argument 'body' {NOT_BASE64}" == message


@pytest.mark.parametrize("where", ["body", "field of OpenAPI 3", "field of Swagger 2.0"])
@pytest.mark.parametrize(
    ("value", "given"),
    [
        ({"content": PNG_64, "filename": "a.png"}, "an object with 'content', 'filename'"),
        ({"text": "a", "base64": PNG_64}, "an object with 'text', 'base64'"),
        ({"text": "a", "mime_type": "text/plain"}, "an object with 'text', 'mime_type'"),
        ({"filename": "a.png"}, "an object with 'filename'"),
        ({}, "an empty object"),
    ],
)
def test_object_that_is_no_file_is_refused(api: str, where: str, value: Json, given: str) -> None:
    """An empty file, or one without what was given, would be another request."""
    parameter = {"name": "f", "in": "formData", "type": "file"}
    document, arguments = {
        "body": (body({"application/octet-stream": {}}), {"body": value}),
        "field of OpenAPI 3": (
            form(MULTIPART, {"f": {"type": "string", "format": "binary"}}),
            {"body": {"f": value}},
        ),
        "field of Swagger 2.0": (swagger_2({"parameters": [parameter]}), {"f": value}),
    }[where]

    message = refused(document, api, arguments)

    assert message.endswith(f"and perhaps its 'filename' and 'media_type'; not {given}.")


@pytest.mark.parametrize(
    ("value", "sent"),
    [("a b&c", "f=a%20b%26c"), (["a", "b"], "f=a&f=b"), ({"a": 1}, "f=%7B%22a%22%3A1%7D")],
)
def test_form_is_urlencoded(api: str, value: Any, sent: str) -> None:
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
def test_multipart_form(api: str, written: Json, value: Any, parts: list[Any]) -> None:
    """Texts, JSON and files, several of each."""
    assert parts == capture(form(MULTIPART, {"f": written}), api, {"body": {"f": value}})["parts"]


def test_openapi_3_1_declares_files_differently(api: str) -> None:
    """A media type without an encoding is a file, with base64 it is text."""
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


def test_file_name_cannot_break_out(api: str) -> None:
    """Its quotes and line breaks are encoded."""
    document = form(MULTIPART, {"f": {"type": "string", "format": "binary"}})
    arguments = {"body": {"f": {"text": "x", "filename": 'a"\r\nX-Evil: 1'}}}

    (part,) = capture(document, api, arguments)["parts"]

    assert ["f", ["a%22%0D%0AX-Evil: 1", "application/octet-stream", "x"]] == part


@pytest.mark.parametrize(
    ("consumes", "files", "kind"),
    [(None, False, FORM), ([MULTIPART], False, MULTIPART), (None, True, MULTIPART)],
)
def test_swagger_2_form_fields_are_arguments(
    api: str, consumes: list[str] | None, files: bool, kind: str
) -> None:
    """One each; a file makes the form multipart."""
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


def test_swagger_2_body_is_json(api: str) -> None:
    """Whatever the parameter's name, the argument is ``body``."""
    parameter = {"name": "pet", "in": "body", "required": True, "schema": {"type": "object"}}

    request = capture(swagger_2({"parameters": [parameter]}), api, {"body": {"a": 1}})

    assert ({"a": 1}, "application/json") == (request["json"], request["headers"]["content-type"])


@pytest.mark.parametrize("method", ["get", "delete", "options", "put", "patch"])
def test_every_method_is_sent(api: str, method: str) -> None:
    """In capitals."""
    assert method.upper() == capture(openapi_3(method=method), api, {})["method"]


def test_arguments_with_the_same_name_stay_distinct(api: str) -> None:
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


def test_connection_headers_are_not_arguments() -> None:
    """Nor those set by the definition or the credential."""
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
def test_accept_header_lists_the_success_media_types(
    api: str, responses: Json, accept: str
) -> None:
    """Those of the responses, then anything."""
    assert accept == capture(openapi_3({"responses": responses}), api, {})["headers"]["accept"]


@pytest.mark.parametrize("value", [{"a": 1}, ["a"], {}])
@pytest.mark.parametrize("media_type", ["application/xml", "text/csv", "text/plain"])
def test_text_of_a_format_is_written_by_the_caller(api: str, media_type: str, value: Any) -> None:
    """Another value would be sent as JSON that the media type does not say."""
    message = f"Argument 'body' is sent as {media_type}: give it as text."
    parameter = {"name": "b", "in": "body", "schema": {}}

    assert message == refused(body({media_type: {}}), api, {"body": value})
    old = swagger_2({"parameters": [parameter], "consumes": [media_type]})
    assert message == refused(old, api, {"body": value})


@pytest.mark.parametrize("where", ["path", "query", "header", "cookie"])
def test_text_of_a_parameter_is_written_by_the_caller(api: str, where: str) -> None:
    """In each place, if its content is not JSON."""
    written = {"name": "p", "in": where, "required": True, "content": {"text/csv": {}}}
    path = "/echo/{p}" if where == "path" else "/echo"
    document = openapi_3({"parameters": [written]}, path=path)

    assert "Argument 'p' is not written by a style: give it as text." == refused(
        document, api, {"p": ["a", "b"]}
    )
    assert "a-b" in str(capture(document, api, {"p": "a-b"}))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            {"type": "string", "enum": ["ON", "OFF"]},
            {"type": "string", "enum": ["ON", "OFF"], "contentMediaType": "text/plain"},
        ),
        ({"type": "integer", "minimum": -3}, {"type": "integer", "minimum": -3}),
        ({"type": "object"}, {"type": "string", "contentMediaType": "text/plain"}),
        ({}, {"type": "string", "contentMediaType": "text/plain"}),
    ],
)
def test_body_of_text_keeps_its_schema(written: Json, expected: Json) -> None:
    """If it describes a text."""
    parameter = {"name": "b", "in": "body", "schema": written}
    old = swagger_2({"parameters": [parameter], "consumes": ["text/plain"]})

    assert expected == schema(body({"text/plain": {"schema": written}}))["properties"]["body"]
    assert expected == schema(old)["properties"]["body"]


def test_schema_of_a_body_of_xml_brings_no_definitions() -> None:
    """The caller writes the XML, and no schema says how."""
    document = body({"application/xml": {"schema": {"$ref": "#/components/schemas/A"}}})
    document["components"] = {"schemas": {"A": {"type": "object"}}}

    assert "$defs" not in schema(document)
