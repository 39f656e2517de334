"""Definitions with one wrong value, at every place: refused by name, or read as far as they say."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentdouble.errors import DefinitionError, ToolCallError
from agentdouble.mcp_services import openapi
from agentdouble.mcp_services.openapi import requests
from tests.agentdouble.mcp_services.openapi.calling import Json, refused

_A = {"$ref": "#/components/schemas/A"}
_FIELDS: Json = {
    "f": {"anyOf": [{"type": "string", "format": "binary"}, {"type": "null"}]},
    "j": _A,
    "m": {"type": "array", "items": _A},
}
_ENCODING: Json = {
    "j": {"contentType": "text/csv, application/json", "headers": {"X": {"schema": {}}}},
    "m": {"style": "deepObject", "explode": True, "allowReserved": True},
}
_FORM: Json = {"schema": {"type": "object", "properties": _FIELDS, "required": ["f"]}}
OPENAPI_3: Json = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://{a}.x", "variables": {"a": {"default": "b"}}}],
    "security": [{"k": []}, {}],
    "paths": {
        "/a/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "style": "label"}],
            "post": {
                "parameters": [
                    {"$ref": "#/components/parameters/Q"},
                    {"name": "h", "in": "header", "content": {"application/json": {"schema": _A}}},
                    {"name": "c", "in": "cookie", "explode": False, "schema": {"type": "array"}},
                ],
                "requestBody": {
                    "content": {"multipart/form-data": {**_FORM, "encoding": _ENCODING}}
                },
                "responses": {"200": {"content": {"text/csv": {}}}},
            },
            "put": {
                "requestBody": {
                    "required": True,
                    "content": {"application/x-www-form-urlencoded": {"encoding": _ENCODING}},
                }
            },
        }
    },
    "components": {
        "parameters": {"Q": {"name": "q", "in": "query", "schema": {"type": ["array", "null"]}}},
        "schemas": {
            "A": {
                "required": ["id", "n"],
                "properties": {"id": {"readOnly": True, "minimum": -1}, "n": {"not": _A}},
                "allOf": [{"oneOf": [_A, {"enum": [1]}]}],
                "dependentRequired": {"n": ["id"]},
                "prefixItems": [{}],
            }
        },
        "securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "key"}},
    },
}
SWAGGER_2: Json = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "1"},
    "host": "h",
    "basePath": "/v",
    "schemes": ["https"],
    "consumes": ["multipart/form-data"],
    "produces": ["text/csv"],
    "securityDefinitions": {"k": {"type": "apiKey", "in": "header", "name": "K"}},
    "parameters": {
        "P": {
            "name": "p",
            "in": "query",
            "type": "array",
            "collectionFormat": "multi",
            "items": {"type": "array", "collectionFormat": "ssv", "items": {"type": "string"}},
        }
    },
    "definitions": {"A": {"properties": {"id": {"readOnly": True}}, "required": ["id"]}},
    "paths": {
        "/a": {
            "parameters": [{"$ref": "#/parameters/P"}],
            "post": {"parameters": [{"name": "f", "in": "formData", "type": "file"}]},
            "put": {
                "consumes": ["application/xml"],
                "parameters": [
                    {"name": "b", "in": "body", "schema": {"$ref": "#/definitions/A"}},
                    {"name": "Accept", "in": "header", "type": "string"},
                ],
            },
        }
    },
}
WRONG: tuple[Any, ...] = (None, True, -1, "x", "", [], {}, [None], [[]], {"$ref": "#/gone"}, _A)
GIVEN: tuple[Any, ...] = ("x", None, [[1], None], {"text": 1, "media_type": 2}, {"filename": []})


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield from places(node[key], (*path, key))


def broken(document: Json, path: tuple[Any, ...], value: Any) -> Json:
    found = copy.deepcopy(document)
    node: Any = found
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return found


@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_wrong_value_is_refused_or_makes_usable_tools(value: Any, version: str) -> None:
    """No other error comes out; each tool's schema is valid, and its calls are sent or refused."""
    document = SWAGGER_2 if version == "2.0" else {**OPENAPI_3, "openapi": version}
    known: set[str] = set()
    for path in places(document):
        try:
            definition = openapi.load(broken(document, path, value))
            openapi.server(definition, base_url="http://a.invalid", auth=openapi.Bearer("t"))
        except DefinitionError:
            continue
        assert openapi.missing_credentials(definition, None) is not None
        for operation in definition.operations:
            tool = json.dumps(dataclasses.asdict(operation), sort_keys=True)
            if tool in known:
                continue
            known.add(tool)
            Draft202012Validator.check_schema(operation.input_schema)
            for given in GIVEN:
                _built(operation, given)

    assert known


def _built(operation: openapi.DefinedOperation, given: Any) -> None:
    arguments = dict.fromkeys(operation.input_schema["properties"], given)
    if "body" in arguments:
        arguments["body"] = dict.fromkeys(("f", "j", "m", "other"), given)
    with suppress(ToolCallError):
        requests.build(operation, arguments, "http://a.invalid")


def test_media_type_of_a_file_that_is_none_is_refused(api: str) -> None:
    """Of any type; the message names the argument."""
    content = {"multipart/form-data": {"schema": {"properties": {"f": {"format": "binary"}}}}}
    document = {
        "openapi": "3.0.3",
        "info": {},
        "paths": {"/echo": {"post": {"operationId": "op", "requestBody": {"content": content}}}},
    }

    message = refused(document, api, {"body": {"f": {"text": "x", "media_type": 7}}})

    assert "Argument 'f': 7 is not a media type." == message


@pytest.mark.parametrize(
    "more", [{}, {"paths": {}}, {"webhooks": {"w": {"post": {}}}}, {"components": {}}]
)
def test_definition_without_operations_is_a_warning(more: Json) -> None:
    """3.1 allows it; its service has no tools."""
    definition = openapi.load({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, **more})

    (warning,) = definition.warnings

    assert "no operations under 'paths'" in warning


def orders() -> Json:
    """Return a definition in Swagger 2.0 without a mistake."""
    number = {"name": "id", "in": "path", "required": True, "type": "integer"}
    tags = {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}}
    scan = [number, {"name": "note", "in": "formData", "type": "string"}]
    answers = {"200": {"description": "fine"}}
    return {
        "swagger": "2.0",
        "info": {"title": "Orders", "version": "1"},
        "consumes": ["application/json"],
        "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "security": [{"key": []}],
        "paths": {
            "/orders": {
                "get": {"operationId": "list", "parameters": [tags], "responses": answers},
                "x-note": "nobody reads this",
            },
            "/orders/{id}": {
                "post": {"operationId": "scan", "parameters": scan, "responses": answers}
            },
        },
    }


MISTAKES = {
    ("paths", "/orders", "gett"): (
        {},
        (
            "'gett' is not a keyword of a path item in Swagger 2.0, so it has no effect (at "
            "#/paths/~1orders/gett). Did you mean get?"
        ),
    ),
    ("paths", "/orders", "get", "operationID"): (
        "all",
        (
            "'operationID' is not a keyword of an operation in Swagger 2.0, so it has no effect "
            "(at #/paths/~1orders/get/operationID). Did you mean operationId?"
        ),
    ),
    ("paths", "/orders", "get", "parameters", 0, "colectionFormat"): (
        "multi",
        (
            "'colectionFormat' is not a keyword of a parameter in Swagger 2.0, so it has no effect "
            "(at #/paths/~1orders/get/parameters/0/colectionFormat). Did you mean collectionFormat?"
        ),
    ),
    ("servers",): (
        [{"url": "http://api.example"}],
        (
            "'servers' is not a keyword of a document in Swagger 2.0, so it has no effect (at "
            "#/servers)."
        ),
    ),
    ("consumes",): ("text/plain", "'consumes' is not a list, so it has no effect (at #/consumes)."),
    ("paths", "/orders/{id}", "post", "parameters", 1, "type"): (
        "fiel",
        (
            "the type 'fiel' is not one of string, number, integer, boolean, array, file, so the "
            "value is sent as text (at #/paths/~1orders~1{id}/post/parameters/1/type). Did you "
            "mean file?"
        ),
    ),
    ("security",): (
        [{"kee": []}],
        "GET /orders needs the security scheme 'kee', which is not declared. Did you mean key?",
    ),
    ("paths", "/orders/{id}", "post", "operationId"): (
        "list",
        "two operations have the name 'list': the tool of POST /orders/{id} is 'list_2'.",
    ),
}


@pytest.mark.parametrize("place", MISTAKES, ids=lambda place: place[-1])
def test_mistake_without_effect_is_a_warning(place: tuple[Any, ...]) -> None:
    """Nothing else shows it: the tools lack something, or send something else."""
    value, warning = MISTAKES[place]

    assert (warning,) == openapi.load(broken(orders(), place, value)).warnings
    assert () == openapi.load(orders()).warnings


def test_many_mistakes_are_a_few_warnings() -> None:
    """The first, and how many more there are."""
    document = {**orders(), **{f"odd{number}": number for number in range(9)}}

    *first, last = openapi.load(document).warnings

    assert (["odd0", "odd1", "odd2", "odd3", "odd4"], "4 more are alike.") == (
        [warning.split("'")[1] for warning in first],
        last,
    )


def test_api_key_in_an_unknown_place_is_named() -> None:
    """When the key has to be sent."""
    document = broken(orders(), ("securityDefinitions", "key", "in"), "haeder")

    with pytest.raises(DefinitionError) as refusal:
        openapi.server(
            openapi.load(document), base_url="http://a.invalid", auth=openapi.ApiKey("k")
        )

    assert (
        "(API keys that it declares: none; 'key' is an API key in 'haeder', which is not one of "
        "header, query, cookie)"
    ) in str(refusal.value)
