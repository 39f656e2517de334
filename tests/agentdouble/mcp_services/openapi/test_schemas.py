"""Conversion of the three formats' schemas to JSON Schema 2020-12."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_specifications
import pytest
from jsonschema import Draft202012Validator

from tests.agentdouble.mcp_services.openapi.calling import Json, openapi_3, schema, swagger_2


def argument(written: Any, schemas: Json | None = None, version: str = "3.0.3") -> Json:
    """Return the argument schema of a tool for a body with this schema."""
    document = openapi_3(
        {"requestBody": {"content": {"application/json": {"schema": written}}}},
        version=version,
        components={"schemas": schemas or {}},
    )
    resolved = schema(document)
    Draft202012Validator.check_schema(resolved)
    return resolved


def converted(written: Any, version: str = "3.0.3") -> Any:
    resolved: Any = argument(written, version=version)["properties"]["body"]
    return resolved


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a", "b"]},
            {"type": ["string", "null"], "enum": ["a", "b", None]},
        ),
        (
            {"nullable": True, "allOf": [{"type": "object"}], "description": "d"},
            {"description": "d", "anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        (
            {"type": "object", "discriminator": {"propertyName": "k"}, "xml": {"name": "n"}},
            {"type": "object"},
        ),
        (
            {"oneOf": [{"type": "string", "nullable": True}], "not": {"minimum": 1}},
            {"oneOf": [{"type": ["string", "null"]}], "not": {"minimum": 1}},
        ),
    ],
)
def test_schema_of_3_0_becomes_2020_12(written: Json, expected: Json) -> None:
    """Keywords that differ are translated."""
    assert expected == converted(written)


@pytest.mark.parametrize(
    "written",
    [
        {"type": ["string", "null"], "const": "a"},
        {"prefixItems": [{"type": "string"}], "items": False},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": True},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"minProperties": 2}}},
    ],
)
def test_schema_of_3_1_is_2020_12(written: Any) -> None:
    """It is kept in full."""
    expected = {} if written is True else written

    assert expected == converted(written, version="3.1.0")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, {}),
        ({"type": ["string", "date"]}, {}),
        ({"required": True, "enum": "a", "title": 1}, {}),
        ({"required": ["a", "a"], "oneOf": []}, {"required": ["a"]}),
        ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_invalid_schema_parts_are_dropped(written: Any, expected: Json, version: str) -> None:
    """The backend validates; an invalid schema would prevent every call."""
    assert expected == converted(written, version)


NUMBERS = (-90, -0.5, 0, 1e-9, 2**70)
VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
    "multipleOf": (0.01, 2),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (0, 3)),
    **dict.fromkeys(("minProperties", "maxProperties"), (0, 3)),
    **dict.fromkeys(("minContains", "maxContains"), (0, 3)),
    **dict.fromkeys(("uniqueItems", "deprecated", "writeOnly"), (True, False)),
    **dict.fromkeys(("title", "description", "format", "pattern"), ("", "a")),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), ("base64",)),
    **dict.fromkeys(("const", "default"), (None, 0, False, "", [], {}, -1)),
    **dict.fromkeys(("enum", "examples"), ([None], [-1, ""])),
    "type": ("null", ["integer", "null"]),
    "required": (["a"],),
    "dependentRequired": ({"a": ["b"]},),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), ([{"minimum": -1}, True],)),
    **dict.fromkeys(
        ("properties", "patternProperties", "dependentSchemas"), ({"a": {"minimum": -1}},)
    ),
}
ONE = ({"minimum": -1}, False)  # of the keywords whose value is a schema


@pytest.mark.parametrize(
    "vocabulary", ["applicator", "unevaluated", "validation", "meta-data", "content"]
)
def test_every_keyword_of_json_schema_is_kept(vocabulary: str) -> None:
    """With every valid value, but for readOnly, which hides a property."""
    name = f"https://json-schema.org/draft/2020-12/meta/{vocabulary}"
    keywords = jsonschema_specifications.REGISTRY.contents(name)["properties"]
    written = [
        {keyword: value}
        for keyword in keywords
        if keyword != "readOnly"
        for value in VALUES.get(keyword, ONE)
    ]

    assert written == [converted(each, version="3.1.0") for each in written]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"minimum": -90, "maximum": 90}, {"minimum": -90, "maximum": 90}),
        ({"minimum": -1, "exclusiveMinimum": True}, {"exclusiveMinimum": -1}),
        ({"maximum": -1, "exclusiveMaximum": True}, {"exclusiveMaximum": -1}),
        ({"maximum": -1, "exclusiveMaximum": False}, {"maximum": -1}),
        ({"maxLength": -1, "multipleOf": -2, "minItems": 1.5}, {}),
    ],
)
def test_bounds_may_be_negative(written: Json, expected: Json) -> None:
    """Counts may not, nor may the factor of multipleOf."""
    assert expected == converted(written)


PET = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "secret": {"type": "string", "writeOnly": True},
    },
}


def test_read_only_properties_are_not_sent() -> None:
    """Neither as properties nor as required ones."""
    assert {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "secret": {"type": "string", "writeOnly": True},
        },
        "required": ["name"],
    } == converted(PET)


ID = {"type": "integer", "readOnly": True}
NAMED = {"type": "object", "properties": {"name": {}}, "required": ["name", "id"]}


@pytest.mark.parametrize(
    "member",
    [
        {"$ref": "#/components/schemas/Id"},
        {"allOf": [{"$ref": "#/components/schemas/Id"}], "description": "d"},
        {"allOf": [{"type": "integer"}], "readOnly": True},
        {"$ref": "#/components/schemas/Plain", "readOnly": True},
        {"anyOf": [{"$ref": "#/components/schemas/Id"}, {"type": "null"}]},
        {"$ref": "#/components/schemas/Alias"},
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_read_only_is_found_behind_references(member: Json, version: str) -> None:
    """And in allOf: such a property is neither shown nor required."""
    schemas = {"Id": ID, "Plain": {"type": "integer"}, "Alias": {"$ref": "#/components/schemas/Id"}}
    written = {"properties": {"id": member, "name": {}}, "required": ["id", "name"]}

    body = argument(written, schemas, version)["properties"]["body"]

    assert {"properties": {"name": {}}, "required": ["name"]} == body


@pytest.mark.parametrize(
    "written",
    [
        {"allOf": [{"properties": {"id": ID}}, {"required": ["id", "name"]}]},
        {"allOf": [{"properties": {"id": ID}}], "required": ["id", "name"]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}], "required": ["id", "name"]},
        {"allOf": [{"$ref": "#/components/schemas/Base"}, {"$ref": "#/components/schemas/Named"}]},
        {
            "properties": {"id": ID},
            "allOf": [{"properties": {"id": {"type": "integer"}}, "required": ["name"]}],
        },
        {"anyOf": [{"properties": {"id": ID}}, {"properties": {"id": ID}}], "required": ["id"]},
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_read_only_hides_a_property_in_the_whole_object(written: Json, version: str) -> None:
    """Wherever it is described or required: the members of allOf are one object."""
    schemas = {"Base": {"properties": {"id": ID}}, "Named": NAMED}

    resolved = argument(written, schemas, version)

    assert '"id"' not in json.dumps(resolved["properties"])
    validator = Draft202012Validator(resolved)
    assert validator.is_valid({"body": {"name": "n"}})


def test_shared_schema_keeps_what_only_another_object_hides() -> None:
    """Named is used alone and with a base that hides its id."""
    schemas = {
        "Base": {"properties": {"id": ID}},
        "Named": {**NAMED, "properties": {"name": {}, "id": {"type": "string"}}},
        "Both": {"allOf": [{"$ref": "#/components/schemas/Base"}, _NAMED]},
    }
    written = {"properties": {"one": {"$ref": "#/components/schemas/Both"}, "two": _NAMED}}
    validator = Draft202012Validator(argument(written, schemas))

    assert validator.is_valid({"body": {"one": {"name": "n"}, "two": {"name": "n", "id": "i"}}})
    assert not validator.is_valid({"body": {"two": {"name": "n"}}})


_NAMED = {"$ref": "#/components/schemas/Named"}


def test_only_required_references_are_included() -> None:
    """Under $defs, also indirect ones."""
    schemas = {
        "A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}},
        "B": {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
        "Unused": {"type": "string"},
    }

    assert {
        "type": "object",
        "properties": {"body": {"$ref": "#/$defs/A"}},
        "additionalProperties": False,
        "$defs": {
            "A": {"properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"type": "array", "items": {"$ref": "#/$defs/A"}},
        },
    } == argument({"$ref": "#/components/schemas/A"}, schemas)


def test_reference_may_point_anywhere_in_the_document() -> None:
    """Also into a schema, by escaped names; names under $defs are plain and unique."""
    schemas: Json = {
        "A/b c": {"properties": {"x~y": {"type": "string"}}},
        "A_b_c": {"type": "integer"},
    }
    written = {
        "properties": {
            "one": {"$ref": "#/components/schemas/A~1b%20c"},
            "two": {"$ref": "#/components/schemas/A_b_c"},
            "three": {"$ref": "#/components/schemas/A~1b c/properties/x~0y"},
        }
    }

    resolved = argument(written, schemas)

    assert {
        "one": {"$ref": "#/$defs/A_b_c"},
        "two": {"$ref": "#/$defs/A_b_c_2"},
        "three": {"$ref": "#/$defs/x_y"},
    } == resolved["properties"]["body"]["properties"]
    assert {
        "A_b_c": {"properties": {"x~y": {"type": "string"}}},
        "A_b_c_2": {"type": "integer"},
        "x_y": {"type": "string"},
    } == resolved["$defs"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.0.3", {"description": "d", "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
        (
            "3.1.0",
            {"description": "d", "minimum": 1, "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        ),
    ],
)
def test_keywords_beside_a_reference(version: str, expected: Json) -> None:
    """In 3.1 they count; before, descriptions and the common nullable are kept."""
    written = {"$ref": "#/components/schemas/A", "description": "d", "minimum": 1, "nullable": True}

    assert expected == argument(written, {"A": {}}, version)["properties"]["body"]


@pytest.mark.parametrize(
    ("schemas", "good", "bad"),
    [
        (  # a base that is one of its children
            {
                "A": {"oneOf": [{"$ref": "#/components/schemas/B"}], "required": ["a"]},
                "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"required": ["b"]}]},
            },
            {"a": 1, "b": 1},
            {"a": 1},
        ),
        (  # a schema that is all of itself
            {"A": {"allOf": [{"$ref": "#/components/schemas/A"}], "required": ["a"]}},
            {"a": 1},
            {},
        ),
        (  # one that is not itself, and with something beside the reference
            {
                "A": {"not": {"$ref": "#/components/schemas/B"}, "type": "object"},
                "B": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"required": ["b"]}]},
            },
            None,
            [],
        ),
    ],
)
def test_self_referencing_schema_terminates(schemas: Json, good: Any, bad: Any) -> None:
    """A validator would follow it forever."""
    validator = Draft202012Validator(argument({"$ref": "#/components/schemas/A"}, schemas))

    assert good is None or validator.is_valid({"body": good})
    assert not validator.is_valid({"body": bad})


def test_swagger_2_parameter_becomes_a_schema() -> None:
    """Without its parameter keywords."""
    parameter = {
        "name": "n",
        "in": "query",
        "description": "d",
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        "collectionFormat": "multi",
        "allowEmptyValue": True,
        "x-nullable": True,
        "default": [1],
    }

    assert {
        "type": ["array", "null"],
        "items": {"type": "integer", "exclusiveMinimum": 0},
        "description": "d",
        "default": [1],
    } == schema(swagger_2({"parameters": [parameter]}))["properties"]["n"]


def test_parameter_description_and_deprecation_are_kept() -> None:
    """They override those of its schema."""
    parameter = {
        "name": "n",
        "in": "query",
        "description": "outer",
        "deprecated": True,
        "schema": {"type": "string", "description": "inner"},
    }

    assert {"type": "string", "description": "outer", "deprecated": True} == schema(
        openapi_3({"parameters": [parameter]})
    )["properties"]["n"]


_BASE = {"$ref": "#/components/schemas/Base"}
_CHILD = {"$ref": "#/components/schemas/Child"}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
@pytest.mark.parametrize("first", ["base", "child"])
def test_read_only_is_found_in_schemas_that_contain_each_other(
    version: str, key: str, first: str
) -> None:
    """A base that lists its children, each of which refers to it; whichever is read first."""
    schemas = {
        "Base": {"properties": {"id": ID}, "required": ["id"], key: [_CHILD, _OTHER]},
        "Child": {"allOf": [_BASE], "required": ["id", "name"], "properties": {"name": {}}},
    }
    both = {"base": _BASE, "child": _CHILD}
    written = {"properties": {first: both[first], **both}}

    resolved = argument(written, schemas, version)

    assert '"id"' not in json.dumps(resolved)
    assert Draft202012Validator(resolved).is_valid(
        {"body": {"base": {"name": "n"}, "child": {"name": "n"}}}
    )


def test_read_only_beside_a_reference_hides_what_the_reference_requires() -> None:
    """In 3.1, where a reference's neighbours count; also in dependentRequired."""
    schemas = {"Named": {**NAMED, "dependentRequired": {"name": ["id", "name"]}}}
    written = {**_NAMED, "properties": {"id": ID}}

    for body in (written, {"allOf": [written]}, {"allOf": [_NAMED], "properties": {"id": ID}}):
        validator = Draft202012Validator(argument(body, schemas, "3.1.0"))

        assert validator.is_valid({"body": {"name": "n"}})
        assert not validator.is_valid({"body": {}})


_OTHER = {"required": ["other"]}
_NOWHERE = {"$ref": "#/components/schemas/Nowhere"}


@pytest.mark.parametrize(
    "written",
    [
        {"oneOf": [_NOWHERE, {"type": "object"}]},
        {"oneOf": [{**_NOWHERE, "description": "d"}, {"type": "object"}], "anyOf": [{}]},
        {"not": _NOWHERE},
        {"not": {"allOf": [_NOWHERE]}},
        {"not": {"anyOf": [_NOWHERE, {"type": "string"}]}},
        {"if": _NOWHERE, "then": {"required": ["b"]}},
        {"allOf": [_NOWHERE], "unevaluatedProperties": False},
        {"properties": {"a": {"contains": _NOWHERE}}},
        {"allOf": [{"$ref": "#/components/schemas/Circle"}]},
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_reference_that_is_dropped_refuses_no_value(written: Json, version: str) -> None:
    """Any value is allowed in its place, and so around it."""
    circle = {"oneOf": [{"$ref": "#/components/schemas/Circle"}, {"type": "object"}]}
    validator = Draft202012Validator(argument(written, {"Circle": circle}, version))

    assert validator.is_valid({"body": {"a": []}})


@pytest.mark.parametrize("written", [{"not": {}}, {"oneOf": [{}, {}]}])
def test_schema_that_allows_nothing_stays(written: Json) -> None:
    """It is what its author wrote, and properties may have such names."""
    assert written == converted(written)
    named = {"properties": dict.fromkeys(("not", "if", "oneOf"), _NOWHERE)}
    assert {"not", "if", "oneOf"} == converted(named)["properties"].keys()
