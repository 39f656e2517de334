"""Documents: where they come from, what is wrong with them, and what they become."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio.lowlevel
import pytest
from mcp.types import ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from agentdouble import serving
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi import sources
from tests.agentdouble.mcp_services.openapi.calling import (
    ANSWERS,
    Json,
    openapi_3,
    seen,
    swagger_2,
    tools,
)

pytestmark = [pytest.mark.libraries, pytest.mark.smoke]

YAML = """\
# a comment
openapi: 3.0.3
info: {title: test, version: 1.0.0}
paths:
  /echo:
    get:
      operationId: op
      parameters:
        - name: country
          in: query
          schema: {type: string, enum: [NO, SE, 12:30, 2001-01-01, yes]}
      responses:
        200: {description: fine}
"""


def error(source: Any, **options: Any) -> DefinitionError:
    with pytest.raises(DefinitionError) as raised:
        openapi.load(source, **options)
    return raised.value


def test_a_document_may_be_a_mapping_of_any_kind() -> None:
    """Which is not changed, and not kept."""
    document = openapi_3()
    definition = openapi.load(MappingProxyType(document))

    assert (document, "test", "1", None) == (
        definition.document,
        definition.title,
        definition.version,
        definition.origin,
    )
    assert definition.document is not document


@pytest.mark.parametrize("as_path", [True, False])
def test_a_document_may_be_a_file(tmp_path: Path, as_path: bool) -> None:
    """Of JSON, with or without a byte order mark."""
    file = tmp_path / "api.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(openapi_3()).encode())

    definition = openapi.load(file if as_path else str(file))

    assert ["op"] == [one.name for one in definition.operations]


def test_a_document_may_be_yaml(tmp_path: Path) -> None:
    """Where words, times and dates are strings, and keys too."""
    file = tmp_path / "api.yaml"
    file.write_text(YAML)

    (operation,) = openapi.load(file).operations

    assert {
        "country": {"type": "string", "enum": ["NO", "SE", "12:30", "2001-01-01", "yes"]}
    } == operation.input_schema["properties"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not an object, as a definition is"),
        ("[]", "it is not an object, as a definition is"),
        ("just words", "it is not an object, as a definition is"),
        ('{"openapi": "3.0.3",', "it is not JSON: "),
        ('{"openapi": NaN}}', "it is not JSON: NaN is not JSON"),
        ("a: [1", "it is neither JSON nor YAML: "),
        ("\tx", "it is neither JSON nor YAML: "),
        ("\0", "it is neither JSON nor YAML: "),
        ("!!python/object:os.system {}", "it is neither JSON nor YAML: could not determine"),
        ("a: &a [*a]", "it contains itself"),
        ("a: 1" + "0" * 400 + ".0", "it has values that JSON has not"),
        ("a: !!binary aGk=", "it has values that JSON has not"),
        ('{"a":' * 100_000, "it is n"),
        ("a: " + "[" * 500 + "]" * 500, "it is n"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    """With the name of the file."""
    file = tmp_path / "api"
    file.write_text(text)

    found = error(file)

    assert str(found).startswith(f"The definition {file} cannot be used: {reason}")


def test_aliases_cannot_grow_without_end(tmp_path: Path) -> None:
    """Nine lines that stand for a billion values."""
    file = tmp_path / "api.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    file.write_text("\n".join(lines))

    assert "its aliases stand for too much" == error(file).reason


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("/nowhere/api.json", "it cannot be read: No such file or directory"),
        ("/", "it cannot be read: Is a directory"),
        ("a\0b", "it cannot be read: that is no path"),
        ("http://[1", "it cannot be fetched: "),
        ([], "a list is neither a document, nor the path of a file, nor a URL"),
        (None, "a NoneType is neither a document"),
        ({}, "it says neither 'swagger' nor 'openapi' with a version"),
        ({"openapi": "3.2.0"}, "openapi '3.2.0' is not supported; supported are Swagger 2.0"),
        ({"swagger": "1.2"}, "swagger '1.2' is not supported"),
        ({"openapi": "2.0"}, "openapi '2.0' is not supported"),
        ({"openapi": {1, 2}}, "it has values that JSON has not: a set"),
    ],
)
def test_a_source_without_a_definition_is_refused(source: Any, reason: str) -> None:
    """By what is missing."""
    assert error(source).reason.startswith(reason)


def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read to its end."""
    monkeypatch.setattr(sources, "LARGEST", 10)
    file = tmp_path / "api.json"
    file.write_text(json.dumps(openapi_3()))

    assert "it is larger than 32 MiB" == error(file).reason


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A web site that has definitions."""

    async def document(_request: Request) -> Response:
        return PlainTextResponse(YAML + "servers: [{url: ../v2}]\n")

    async def endless(_request: Request) -> Response:
        async def stream() -> Any:
            while True:
                yield b" " * 65536
                await anyio.lowlevel.checkpoint()

        return StreamingResponse(stream())

    listener = serving.open_socket("127.0.0.1", 0)
    url = serving.address_of(listener)
    routes = [
        Route("/docs/api.yaml", document),
        Route("/endless", endless),
        Route("/moved", lambda _request: RedirectResponse("/docs/api.yaml")),
        Route("/round", lambda _request: RedirectResponse("/round")),
        Route("/elsewhere", lambda _request: RedirectResponse("ftp://example.com/")),
    ]
    server = serving.ServerThread(Starlette(routes=routes), listener)
    server.start()
    yield url
    server.stop()


@pytest.mark.parametrize("path", ["/docs/api.yaml", "/moved"])
def test_a_document_may_be_at_a_url(site: str, path: str) -> None:
    """Addresses in it are relative to where it was found."""
    definition = openapi.load(site + path)

    assert f"{site}/docs/api.yaml" == definition.origin
    openapi.server(definition)  # knows its address, else it would say so


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nothing", "it cannot be fetched: its URL answers HTTP 404"),
        ("/round", "its URL redirects more than 3 times"),
        ("/elsewhere", "it cannot be fetched: UnsupportedProtocol"),
    ],
)
def test_a_url_that_has_no_document_is_refused(site: str, path: str, reason: str) -> None:
    """The message has the URL without what may be secret in it."""
    found = error(f"{site.replace('//', '//user:secret@')}{path}?token=secret")

    assert f"The definition {site}{path} cannot be used: {reason}." == str(found)


def test_a_document_at_a_url_is_bounded_in_size(site: str) -> None:
    """One without end is left after 32 MiB."""
    assert "it is larger than 32 MiB" == error(f"{site}/endless").reason


def test_a_document_at_a_url_is_bounded_in_time(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of it comes meanwhile."""
    monkeypatch.setattr(sources, "LARGEST", 1 << 40)
    monkeypatch.setattr(sources, "FETCH_S", 0.1)

    said = error(f"{site}/endless").reason

    assert "it cannot be fetched: that takes longer than 0.1 s" == said


def test_nobody_at_a_url_is_an_error() -> None:
    """A port that is closed."""
    listener = serving.open_socket("127.0.0.1", 0)
    url = serving.address_of(listener)
    listener.close()

    assert "it cannot be fetched: ConnectError" == error(url).reason


def body(schema: Json, **more: Any) -> Json:
    """Return a document with an operation whose body has a schema."""
    content = {"application/json": {"schema": schema}}
    return openapi_3({"requestBody": {"content": content}}, **more)


NAMES = {"type": "object", "required": ["a", "a"], "properties": {"a": {"type": "string"}}}
BODY = "#/paths/~1echo/post/requestBody/content/application~1json/schema"


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        (
            openapi_3({"responses": {"200": {}}}),
            "#/paths/~1echo/post/responses/200",
            "'description' is a required property",
        ),
        (
            swagger_2({"parameters": [{"name": "a", "in": "query", "type": "strin"}]}),
            "#/paths/~1echo/post/parameters/0/type",
            "'strin' is not valid here",
        ),
        (
            openapi_3(
                {"parameters": [{"name": "a", "in": "path", "required": True, "schema": {}}]}
            ),
            "#/paths/~1echo/post/parameters/0",
            "the path '/echo' has no {a}",
        ),
        (body({"items": {"type": 3}}, version="3.1.0"), f"{BODY}/items/type", "3 is not valid"),
        ({"openapi": "3.0.0", "paths": {}}, "#", "'info' is a required property"),
        (body(NAMES), f"{BODY}/required", "['a', 'a'] is no list of different names"),
        (body(NAMES, version="3.1.0"), f"{BODY}/required", "['a', 'a'] is no list of"),
        (body({"required": True}), f"{BODY}/required", "True is no list of different names"),
        (
            body({"minimum": 0, "exclusiveMinimum": True}, version="3.1.0"),
            f"{BODY}/exclusiveMinimum",
            "True is not valid here",
        ),
        (body({"items": [{}]}), f"{BODY}/items", "a list of schemas is read as prefixItems"),
        (body({"properties": {"a": "string"}}), f"{BODY}/properties/a", "'string' is not valid"),
        (body({"properties": []}, version="3.1.0"), f"{BODY}/properties", "[] is not valid here"),
        (body({"enum": "a"}), f"{BODY}/enum", "'a' is not valid here"),
    ],
)
def test_what_breaks_the_specification_and_no_request_is_a_warning(
    document: Json, place: str, reason: str
) -> None:
    """Published definitions are full of it. The warning says where."""
    with pytest.warns(UserWarning, match="is used all the same") as told:
        definition = openapi.load(document)

    assert [one for one in definition.warnings if one.startswith(f"{place}: ") and reason in one]
    assert f"{place}: " in str(told[0].message)


def test_a_document_without_slips_brings_no_warning() -> None:
    """Whose bounds are as its version has them."""
    bounds = {"minimum": 0, "exclusiveMinimum": True}

    assert () == openapi.load(body(bounds)).warnings


def test_warnings_need_not_be_looked_for() -> None:
    """For a document that is known."""
    definition = openapi.load(openapi_3({"responses": {"200": {}}}), validate=False)

    assert ["op"] == [one.name for one in definition.operations]


PARAMETER = {"name": "a", "in": "query", "schema": {}}


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        ({**openapi_3(), "paths": []}, "#/paths", "[] is no object"),
        ({**openapi_3(), "paths": {"/a": []}}, "#/paths/~1a", "[] is no object"),
        ({**openapi_3(), "paths": {"/a": {"get": 1}}}, "#/paths/~1a/get", "1 is no object"),
        (
            openapi_3({"parameters": PARAMETER}),
            "#/paths/~1echo/post/parameters",
            "{'in': 'query', 'name': 'a', 'schema': {}} is no list",
        ),
        (openapi_3({"parameters": ["a"]}), "#/paths/~1echo/post/parameters/0", "no object"),
        (
            openapi_3({"parameters": [{**PARAMETER, "in": "body"}]}),
            "#/paths/~1echo/post/parameters/0",
            "'in' with one of path, query, header, cookie, not 'body'",
        ),
        (
            openapi_3({"parameters": [{"in": "query", "schema": {}}]}),
            "#/paths/~1echo/post/parameters/0",
            "a parameter needs a name",
        ),
        (
            openapi_3({"requestBody": {"description": "none"}}),
            "#/paths/~1echo/post/requestBody",
            "a requestBody needs content of a media type",
        ),
    ],
)
def test_what_makes_no_request_is_refused(document: Json, place: str, reason: str) -> None:
    """With its place, and with no advice that nobody can follow."""
    found = error(document)

    assert place == found.place
    assert reason in found.reason
    assert "validate" not in str(found)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/components/schemas/Gone", "leads nowhere: there is no 'Gone'"),
        ("#/paths/~1echo/post/parameters/7", "leads nowhere: there is no '7'"),
        ("other.json#/A", "leads out of the document, and what is outside is not read"),
        ("file:///etc/passwd", "leads out of the document, and what is outside is not read"),
        ("http://169.254.169.254/", "leads out of the document, and what is outside is not read"),
        ("#Anchor", "names an anchor"),
    ],
)
@pytest.mark.parametrize("validate", [True, False])
def test_a_broken_reference_has_a_place(reference: str, reason: str, validate: bool) -> None:
    """Nothing is fetched or opened for it."""
    document = openapi_3({"parameters": [{"$ref": reference}]}, components={"schemas": {}})

    found = error(document, validate=validate)

    assert "#/paths/~1echo/post/parameters/0" == found.place
    assert found.reason.startswith(f"the reference {reference!r} {reason}")


def test_references_that_go_in_a_circle_have_a_place() -> None:
    """There is nothing at their end."""
    schemas = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    found = error(openapi_3(components={"schemas": schemas}))

    assert found.place in ("#/components/schemas/A", "#/components/schemas/B")
    assert found.reason.startswith("references go round in a circle: #/components/schemas/")


def test_what_looks_like_a_reference_may_be_a_value() -> None:
    """In examples, defaults and extensions; a property may have the name too."""
    gone = {"$ref": "#/gone"}
    properties = {"$ref": {"type": "string"}, "default": {"type": "string"}, "a": {"example": gone}}
    document = openapi_3(
        components={"schemas": {"A": {"type": "object", "properties": properties, "x-b": gone}}}
    )

    assert 1 == len(openapi.load(document).operations)


def operations(*ids: str | None) -> Json:
    """Return a document whose operations have those ids."""
    paths: Json = {}
    for number, one in enumerate(ids):
        operation: Json = {**ANSWERS, **({"operationId": one} if one is not None else {})}
        paths[f"/things/{{id}}/part{number}"] = {"get": operation}
    return {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths}


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["list.pets-2_x"], ["list.pets-2_x"]),
        (["pets/list all", "é"], ["pets_list_all", "get"]),
        ([None, ""], ["get_things_id_part0", "get_things_id_part1"]),
        (["a b", "a/b", "a_b", "a_b_2"], ["a_b", "a_b_2", "a_b_3", "a_b_2_2"]),
        (["x" * 200, "x" * 128 + "y"], ["x" * 128, "x" * 126 + "_2"]),
    ],
)
def test_a_tool_has_a_name_that_mcp_allows(ids: list[str | None], names: list[str]) -> None:
    """The operation's id, made to fit and unique; or its method and path."""
    assert names == [one.name for one in tools(operations(*ids), validate=False)]


def test_placeholders_that_nobody_declares_are_strings() -> None:
    """A document that is not validated may lack them."""
    (tool,) = tools(operations("op"), validate=False)

    assert {"id": {"type": "string"}} == tool.input_schema["properties"]
    assert ["id"] == tool.input_schema["required"]


@pytest.mark.parametrize(
    ("operation", "title", "description"),
    [
        ({"summary": "Short", "description": "Long."}, "Short", "Short\n\nLong."),
        ({"summary": "Same", "description": "Same"}, "Same", "Same"),
        ({"description": "Long."}, None, "Long."),
        ({}, None, "POST /echo"),
        ({"summary": "Old", "deprecated": True}, "Old", "Deprecated.\n\nOld"),
    ],
)
def test_a_tool_is_described(operation: Json, title: str | None, description: str) -> None:
    """By summary and description of the operation."""
    (tool,) = tools(openapi_3(operation))

    assert (title, description) == (tool.title, tool.description)


@pytest.mark.parametrize(
    ("method", "read_only", "destructive", "idempotent"),
    [
        ("get", True, False, True),
        ("post", False, False, False),
        ("put", False, True, True),
        ("patch", False, True, False),
        ("delete", False, True, True),
    ],
)
def test_a_tool_hints_at_what_it_does(
    method: str, read_only: bool, destructive: bool, idempotent: bool
) -> None:
    """As its method means it."""
    (tool,) = tools(openapi_3(method=method))

    assert (
        ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=True,
        )
        == tool.annotations
    )


def test_parameters_of_a_path_are_those_of_its_operations(api: str) -> None:
    """An operation's own takes the place of one of the same name and place."""
    document = openapi_3(
        {"parameters": [{"name": "a", "in": "query", "schema": {"type": "integer"}}]},
        path="/echo/{id}",
        method="get",
    )
    document["paths"]["/echo/{id}"]["parameters"] = [
        {"$ref": "#/components/parameters/Id"},
        {"name": "a", "in": "query", "schema": {"type": "string"}},
        {"name": "a", "in": "header", "schema": {"type": "string"}},
    ]
    document["components"] = {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {}}}
    }

    asked = seen(document, api, {"id": 1, "a_query": 2, "a_header": "3"})

    assert ("/echo/1?a=2", "3") == (asked["target"], asked["headers"]["a"])


def test_a_header_needs_a_name_that_is_one() -> None:
    """It would become another header otherwise."""
    document = openapi_3({"parameters": [{"name": "a\r\nb", "in": "header", "schema": {}}]})

    found = error(document)

    assert "#/paths/~1echo/post/parameters/0" == found.place


def test_a_media_type_needs_to_be_one() -> None:
    """It would become another header otherwise."""
    content = {"application/json\r\nX-Evil: 1": {"schema": {}}}

    assert "is no media type" in error(openapi_3({"requestBody": {"content": content}})).reason
