"""Definitions: errors in them, and the tools that they become."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from mcp.types import ToolAnnotations

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services import openapi
from tests.agentdouble.mcp_services.openapi.calling import (
    ANSWERS,
    Json,
    capture,
    openapi_3,
    tools,
)

pytestmark = pytest.mark.smoke

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


def error(source: Any) -> DefinitionError:
    with pytest.raises(DefinitionError) as raised:
        openapi.load(source)
    return raised.value


def test_document_may_be_any_mapping() -> None:
    """It is neither changed nor kept."""
    document = openapi_3()
    definition = openapi.load(MappingProxyType(document))

    assert (document, "test", "1") == (
        definition.document,
        definition.title,
        definition.version,
    )
    assert definition.document is not document


@pytest.mark.parametrize("as_path", [True, False])
def test_document_may_be_a_file(tmp_path: Path, as_path: bool) -> None:
    """JSON, with or without a byte order mark."""
    file = tmp_path / "api.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(openapi_3()).encode())

    definition = openapi.load(file if as_path else str(file))

    assert ["op"] == [operation.name for operation in definition.operations]


def test_document_may_be_yaml(tmp_path: Path) -> None:
    """Words, times, dates and keys are strings."""
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
        ('{"openapi": "3.0.3",', "it is not JSON: "),
        (r'{"openapi": "\ud800"}', "it is not JSON: "),
        (r'openapi: "\ud800"', "it is neither JSON nor YAML: found invalid Unicode"),
        ("a: [1", "it is neither JSON nor YAML: "),
        ('{"a": ' + "[" * 100_000, "it is nested too deeply"),
        ("a: " + "[" * 5000, "it is ne"),  # libyaml has a limit of its own
        ('{"a": ' + "9" * 5000 + "}", "it is not JSON: "),
        ("a: " + "9" * 5000, "it is neither JSON nor YAML: "),
        ("!!python/object:os.system {}", "it is neither JSON nor YAML: could not determine"),
        ("a: &a [*a]", "it contains itself"),
    ],
)
def test_invalid_document_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    """With the file's name."""
    file = tmp_path / "api"
    file.write_text(text)

    message = error(file)

    assert str(message).startswith(f"The definition {file} cannot be used: {reason}")


def test_yaml_aliases_are_limited(tmp_path: Path) -> None:
    """Nine lines that expand to a billion values."""
    file = tmp_path / "api.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    file.write_text("\n".join(lines))

    assert "its aliases stand for too much" == error(file).reason


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("/nowhere/api.json", "it cannot be read: No such file or directory"),
        ({}, "it says neither 'swagger' nor 'openapi' with a version"),
        ({"openapi": "3.2.0"}, "openapi '3.2.0' is not supported; supported are Swagger 2.0"),
        ({"openapi": "\ud800"}, "it has values that JSON has not: "),
        ({"openapi": {1, 2}}, "it has values that JSON has not: a set"),
    ],
)
def test_incomplete_definition_is_refused(source: Any, reason: str) -> None:
    """The error says what is missing."""
    assert error(source).reason.startswith(reason)


PARAMETER = {"name": "a", "in": "query", "schema": {}}


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        ({**openapi_3(), "paths": []}, "#/paths", "[] is not an object"),
        (openapi_3({"parameters": ["a"]}), "#/paths/~1echo/post/parameters/0", "not an object"),
        (
            openapi_3({"parameters": [{**PARAMETER, "in": "body"}]}),
            "#/paths/~1echo/post/parameters/0",
            "'in' with one of path, query, header, cookie, not 'body'",
        ),
        (
            openapi_3({"requestBody": {"description": "none"}}),
            "#/paths/~1echo/post/requestBody",
            "a requestBody needs content of a media type",
        ),
    ],
)
def test_unsendable_operation_is_refused(document: Json, place: str, reason: str) -> None:
    """With its location, and without useless advice."""
    message = error(document)

    assert place == message.place
    assert reason in message.reason


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/components/schemas/Gone", "leads nowhere: there is no 'Gone'"),
        ("other.json#/A", "leads out of the document, and what is outside is not read"),
        ("#Anchor", "names an anchor"),
    ],
)
def test_broken_reference_is_located(reference: str, reason: str) -> None:
    """Nothing is fetched or opened for it."""
    document = openapi_3({"parameters": [{"$ref": reference}]}, components={"schemas": {}})

    message = error(document)

    assert "#/paths/~1echo/post/parameters/0" == message.place
    assert message.reason.startswith(f"the reference {reference!r} {reason}")


BROKEN = {"$ref": "#/components/schemas/Gone"}


@pytest.mark.parametrize(
    "reference", ["#/components/schemas/Gone", "other.json#/A", "#Anchor", "#/components/schemas/A"]
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    "place",
    [
        lambda broken: {"parameters": [{"name": "q", "in": "query", "schema": broken}]},
        lambda broken: _body({"application/json": {"schema": broken}}),
        lambda broken: _body({"application/json": {"schema": {"properties": {"a": broken}}}}),
        lambda broken: _body({"application/json": {"schema": {"items": broken}}}),
        lambda broken: _body({"application/json": {"schema": {"allOf": [broken, {}]}}}),
        lambda broken: _body({"multipart/form-data": {"schema": {"properties": {"f": broken}}}}),
        lambda broken: _body({"multipart/form-data": {"schema": broken}}),
        lambda broken: _body({"application/x-www-form-urlencoded": {"schema": broken}}),
        lambda broken: {"responses": {"200": broken}},
    ],
)
def test_dangling_reference_in_a_schema_is_a_warning(
    api: str, reference: str, version: str, place: Any
) -> None:
    """One, with its place; any value is allowed there."""
    operation = place({"$ref": reference})
    document = openapi_3(
        {"operationId": "op", **operation}, components={"schemas": CIRCLE}, version=version
    )
    document["paths"]["/other"] = {"get": {"operationId": "other", **operation}}

    warnings = openapi.load(document).warnings

    if (
        reference == "#/components/schemas/A"
        and version == "3.1.0"
        and "responses" not in operation
    ):
        assert len(warnings) <= 1  # a circle of schemas allows any value
    else:
        (warning,) = warnings
        assert "#/paths/~1echo/post/" in warning
        assert warning.endswith("Any value is allowed there.")
    assert "op" in [tool.name for tool in tools(document)]


def _body(content: Json) -> Json:
    return {"requestBody": {"content": content}}


@pytest.mark.parametrize(
    "operation",
    [{"parameters": [BROKEN]}, {"requestBody": BROKEN}],
)
def test_missing_parameter_or_body_is_refused(operation: Json) -> None:
    """Without it, a request would be wrong; so is a missing path item."""
    assert "leads nowhere" in error(openapi_3(operation)).reason
    document = openapi_3()
    document["paths"]["/echo"] = {"$ref": "#/gone"}
    assert "leads nowhere" in error(document).reason


CIRCLE = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}


def test_circular_references_are_located() -> None:
    parameters = {"A": {"$ref": "#/components/parameters/A"}}
    document = openapi_3(
        {"parameters": [{"$ref": "#/components/parameters/A"}]},
        components={"parameters": parameters},
    )

    assert error(document).reason.startswith("references go round in a circle: #/components/")


def operations(*ids: str | None) -> Json:
    """Return a document whose operations have these ids."""
    paths: Json = {}
    for number, id_ in enumerate(ids):
        operation: Json = {**ANSWERS, **({"operationId": id_} if id_ is not None else {})}
        paths[f"/things/{{id}}/part{number}"] = {"get": operation}
    return {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths}


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["pets/list all", "é"], ["pets_list_all", "get"]),
        ([None, ""], ["get_things_id_part0", "get_things_id_part1"]),
        (["a b", "a/b", "a_b", "a_b_2"], ["a_b", "a_b_2", "a_b_3", "a_b_2_2"]),
    ],
)
def test_tool_names_are_valid_in_mcp(ids: list[str | None], names: list[str]) -> None:
    """The operation's id, adapted and unique; or its method and path."""
    assert names == [tool.name for tool in tools(operations(*ids))]


def test_undeclared_placeholders_are_strings() -> None:
    (tool,) = tools(operations("op"))

    assert {"id": {"type": "string"}} == tool.input_schema["properties"]
    assert ["id"] == tool.input_schema["required"]


@pytest.mark.parametrize(
    ("operation", "title", "description"),
    [
        ({"summary": "Short", "description": "Long."}, "Short", "Short\n\nLong."),
        ({}, None, "POST /echo"),
        ({"summary": "Old", "deprecated": True}, "Old", "Deprecated.\n\nOld"),
    ],
)
def test_tool_description(operation: Json, title: str | None, description: str) -> None:
    """From the operation's summary and description."""
    (tool,) = tools(openapi_3(operation))

    assert (title, description) == (tool.title, tool.description)


@pytest.mark.parametrize(
    ("method", "read_only", "destructive", "idempotent"),
    [("get", True, False, True), ("post", False, False, False), ("delete", False, True, True)],
)
def test_tool_hints(method: str, read_only: bool, destructive: bool, idempotent: bool) -> None:
    """From the operation's method."""
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


def test_path_parameters_apply_to_its_operations(api: str) -> None:
    """An operation's parameter overrides one with the same name and place."""
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

    request = capture(document, api, {"id": 1, "a_query": 2, "a_header": "3"})

    assert ("/echo/1?a=2", "3") == (request["target"], request["headers"]["a"])


def test_invalid_media_type_is_refused() -> None:
    """It could inject another header."""
    content = {"application/json\r\nX-Evil: 1": {"schema": {}}}

    assert "is not a media type" in error(openapi_3({"requestBody": {"content": content}})).reason
