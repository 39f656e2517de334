"""The fields of forms, whatever their schemas are made of: files, texts, and their encodings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agentdouble.mcp_services.openapi.calling import Json, capture, openapi_3, schema

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
FILE: Json = {"type": "string", "format": "binary"}
FILES: Json = {"type": "array", "items": FILE}
NULL: Json = {"type": "null"}
SENT = ["f", ["f", "application/octet-stream", "hi"]]
SELF: Json = {"$ref": "#/components/schemas/Self"}


def form(
    written: Json, encoding: Json | None = None, kind: str = MULTIPART, **shared: Json
) -> Json:
    content = {kind: {"schema": written, "encoding": encoding or {}}}
    return openapi_3(
        {"requestBody": {"content": content}}, version="3.1.0", components={"schemas": shared}
    )


def of(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "written",
    [
        of(f=FILE),
        of(f={"anyOf": [FILE, NULL]}),
        of(f={"oneOf": [NULL, {"$ref": "#/components/schemas/File"}]}),
        of(f={"allOf": [{"$ref": "#/components/schemas/File"}], "description": "a file"}),
        of(f={"anyOf": [{"contentMediaType": "image/png"}, FILES]}),
        {"oneOf": [of(f=FILE), of(url={"type": "string"})]},
        {"type": "object", "anyOf": [{"allOf": [of(f=FILE)]}]},
        {"type": "object", "additionalProperties": FILE},
        {"allOf": [{"type": "object", "additionalProperties": {"anyOf": [FILE, NULL]}}]},
        {"$ref": "#/components/schemas/Base", "properties": {"f": FILE}},
        {"allOf": [SELF, of(f=FILE)]},
    ],
)
def test_field_is_a_file_whatever_its_schema_is_made_of(api: str, written: Json) -> None:
    """Also if it may be null, in a choice, and beside a reference; the schema asks for a file."""
    shared: Json = {"File": FILE, "Base": of(a={"type": "string"}), "Self": {"allOf": [SELF]}}
    document = form(written, **shared)

    assert [SENT] == capture(document, api, {"body": {"f": "aGk="}})["parts"]
    assert "filename" in str(schema(document))


@pytest.mark.parametrize(
    "written",
    [{"anyOf": [FILES, NULL]}, {"anyOf": [FILE, FILES]}, {**FILES, "type": ["array", "null"]}],
)
def test_field_takes_several_files(api: str, written: Json) -> None:
    """One part each."""
    request = capture(form(of(f=written)), api, {"body": {"f": ["aGk=", {"text": "hi"}]}})

    assert [SENT, SENT] == request["parts"]


@pytest.mark.parametrize(
    "shared",
    [
        {"type": "array", "items": SELF},
        {"allOf": [SELF]},
        {"anyOf": [SELF, NULL]},
        {"allOf": [{"properties": {"f": SELF}}, SELF]},
    ],
)
@pytest.mark.parametrize("encoding", [{}, {"f": {"contentType": "text/plain"}}])
def test_schema_that_contains_itself_is_a_form(api: str, shared: Json, encoding: Json) -> None:
    """As the body and as a field."""
    for written in (SELF, of(f=SELF)):
        document = form(written, encoding, Self=shared)

        assert [["f", "x"]] == capture(document, api, {"body": {"f": ["x"]}})["parts"]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_file_with_a_style_is_a_file(api: str, version: str) -> None:
    """Generators write the default style at every field."""
    document = form(of(f=FILE), {"f": {"style": "form", "explode": True}})
    document["openapi"] = version

    assert [SENT] == capture(document, api, {"body": {"f": "aGk="}})["parts"]


@pytest.mark.parametrize("kind", [FORM, MULTIPART])
def test_field_of_text_keeps_its_schema(kind: str) -> None:
    """Only what is not text is written by the caller."""
    names: Json = {"type": "string", "enum": ["a", "b"]}
    count: Json = {"type": "integer", "minimum": -1}
    fields = of(name=names, count=count, names={"type": "array", "items": names}, xml=of(a={}))
    encoding = {key: {"contentType": "text/plain"} for key in fields["properties"]}
    text = {"contentMediaType": "text/plain"}

    (body,) = schema(form(fields, encoding, kind))["properties"].values()

    assert {
        "name": names | text,
        "count": count,
        "names": {"type": "array", "items": names | text},
        "xml": {"type": "string", **text},
    } == body["properties"]


def test_texts_of_a_list_are_repeated(api: str) -> None:
    """In both kinds of form."""
    fields, encoding = of(f={"type": "array"}), {"f": {"contentType": "text/plain"}}
    given = {"body": {"f": ["a", "b"]}}

    assert "f=a&f=b" == capture(form(fields, encoding, FORM), api, given)["body"]
    assert [["f", "a"], ["f", "b"]] == capture(form(fields, encoding), api, given)["parts"]


def test_any_content_type_is_as_none(api: str) -> None:
    """It says nothing about the part."""
    document = form(of(f={"type": "string"}), {"f": {"contentType": "*/*"}})

    assert [["f", "x"]] == capture(document, api, {"body": {"f": "x"}})["parts"]


@pytest.mark.parametrize("value", ["%41+b", "a&b=c", "é/ü"])
def test_part_of_a_multipart_form_is_not_encoded(api: str, value: Any) -> None:
    """With any style, and with reserved characters."""
    document = form(of(), {"f": {"allowReserved": True}})

    assert [["f", value]] == capture(document, api, {"body": {"f": value}})["parts"]


URI: Json = {"type": "string", "format": "uri"}


@pytest.mark.parametrize(
    "written",
    [
        {"oneOf": [FILE, URI]},
        {"anyOf": [of(id={}), NULL, {"allOf": [FILE]}, URI]},
        {"anyOf": [FILES, {"type": "array", "items": URI}, FILE, URI]},
        {"type": "array", "items": {"anyOf": [FILE, URI, of(id={})]}},
    ],
)
@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"text": "hi"}, SENT[1]),
        ({"base64": "aGk=", "filename": "f.png"}, ["f.png", "image/png", "hi"]),
        ("https://a.example", "https://a.example"),
        ({"id": 7}, '{"id":7}'),
        ({"text": "hi", "more": 1}, '{"text":"hi","more":1}'),
    ],
)
def test_field_takes_a_file_or_another_value(
    api: str, written: Json, value: Any, part: Any
) -> None:
    """An object with a file's content is the file; alone and in a list."""
    document = form(of(f=written))

    assert [["f", part]] == capture(document, api, {"body": {"f": value}})["parts"]
    assert [["f", part]] * 2 == capture(document, api, {"body": {"f": [value] * 2}})["parts"]
    assert "An object with its 'text'" in str(schema(document))
