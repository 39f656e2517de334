"""Mutants of the schemas and descriptions of tools, and of complex arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.mutants import Mutant, lossy, wire

TYPES = "parameter types generate the tool schema (4.6)"
DOCSTRING = "docstring is the tool description (4.6)"
COMPLEX = "a complex object parameter is allowed (4.6)"
EVERY = ""


def _tools(change: Callable[[Any], Any], name: str = EVERY) -> wire.Change:
    """Change one listed tool, or every one."""

    def changed(result: Any) -> Any:
        tools = [
            change(tool) if name in (EVERY, tool["name"]) else tool for tool in result["tools"]
        ]
        return {**result, "tools": tools}

    return wire.calls("tools/list", changed)


def _schema(change: Callable[[Any], None], name: str = EVERY) -> wire.Change:
    """Change the input schema of one tool in place, or of every one."""

    def changed(tool: Any) -> Any:
        tool = copy.deepcopy(tool)
        change(tool["inputSchema"])
        return tool

    return _tools(changed, name)


def _described(change: Callable[[str], str], name: str = EVERY) -> wire.Change:
    return _tools(lambda tool: {**tool, "description": change(tool["description"])}, name)


def _order(change: Callable[[Any], Any]) -> wire.Change:
    """Change the order that the tool ``place`` is called with."""

    def changed(params: Any) -> Any:
        given = params.get("arguments") or {}
        if params["name"] != "place" or not isinstance(given.get("order"), dict):
            return params
        return {**params, "arguments": {**given, "order": change(given["order"])}}

    return wire.called_with("tools/call", changed)


def _argument(name: str, change: Callable[[Any], Any]) -> wire.Change:
    def changed(params: Any) -> Any:
        given = dict(params.get("arguments") or {})
        if name in given:
            given[name] = change(given[name])
        return {**params, "arguments": given}

    return wire.called_with("tools/call", changed)


def _types_become(of: str, new: str) -> Callable[[Any], None]:
    def change(schema: Any) -> None:
        for one in _nested(schema):
            if one.get("type") == of:
                one["type"] = new

    return change


def _nested(schema: Any) -> list[Any]:
    """Return a schema and all schemas in it."""
    if isinstance(schema, list):
        return [found for one in schema for found in _nested(one)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for one in schema.values() for found in _nested(one))]


def _require_all(schema: Any) -> None:
    schema["required"] = list(schema["properties"])


def _require_nothing(schema: Any) -> None:
    schema.pop("required", None)


def _only_the_first(schema: Any) -> None:
    first = next(iter(schema["properties"]))
    schema["properties"] = {first: schema["properties"][first]}
    schema["required"] = [name for name in schema.get("required", []) if name == first]


def _types_lost(schema: Any) -> None:
    schema["properties"] = {name: {} for name in schema["properties"]}


def _nothing_shown(schema: Any) -> None:
    schema.clear()
    schema["type"] = "object"


def _no_definitions(schema: Any) -> None:
    schema.pop("$defs", None)


def _bare_objects(schema: Any) -> None:
    """Show objects within the parameters as objects of any form."""
    for definition in schema.get("$defs", {}).values():
        if definition.get("type") == "object":
            definition.pop("properties", None)
            definition.pop("required", None)


def _bare_items(schema: Any) -> None:
    for one in _nested(schema):
        if one.get("type") == "array":
            one["items"] = {}


def _no_enums(schema: Any) -> None:
    for one in _nested(schema):
        one.pop("enum", None)


def _first_of_enums(schema: Any) -> None:
    for one in _nested(schema):
        if isinstance(one.get("enum"), list):
            one["enum"] = one["enum"][:1]


def _names_of_enums(schema: Any) -> None:
    for one in _nested(schema):
        if isinstance(one.get("enum"), list):
            one["enum"] = [value.upper() for value in one["enum"]]


def _never_null(schema: Any) -> None:
    for one in _nested(schema):
        kinds = [kind for kind in one.get("anyOf", []) if kind.get("type") != "null"]
        if len(kinds) == 1 and len(one["anyOf"]) > 1:
            del one["anyOf"]
            one.update(kinds[0])


def _bare_unions(schema: Any) -> None:
    for one in _nested(schema):
        one.pop("anyOf", None)


def _nested_required_lost(schema: Any) -> None:
    for definition in schema.get("$defs", {}).values():
        definition.pop("required", None)


def _names_in_camel_case(schema: Any) -> None:
    schema["properties"] = {name.title(): one for name, one in schema["properties"].items()}
    schema["required"] = [name.title() for name in schema.get("required", [])]


MUTANTS = (
    Mutant(
        "show_whole_numbers_as_numbers",
        "MCP-04",
        TYPES,
        _schema(_types_become("integer", "number")),
    ),
    Mutant(
        "show_whole_numbers_as_texts",
        "MCP-04",
        TYPES,
        _schema(_types_become("integer", "string"), "add"),
    ),
    Mutant("show_no_types", "MCP-04", TYPES, _schema(_types_lost, "add")),
    Mutant("show_no_parameters_of_async_tools", "MCP-04", TYPES, _schema(_nothing_shown, "join")),
    Mutant("show_only_the_first_parameter", "MCP-04", TYPES, _schema(_only_the_first)),
    Mutant("require_parameters_with_defaults", "MCP-04", TYPES, _schema(_require_all)),
    Mutant("require_no_parameter", "MCP-04", TYPES, _schema(_require_nothing)),
    Mutant("show_parameters_under_other_names", "MCP-04", TYPES, _schema(_names_in_camel_case)),
    Mutant("show_enums_without_their_values", "MCP-04", TYPES, _schema(_no_enums)),
    Mutant("show_only_the_first_value_of_enums", "MCP-04", TYPES, _schema(_first_of_enums)),
    Mutant("show_the_names_of_enums_for_their_values", "MCP-04", TYPES, _schema(_names_of_enums)),
    Mutant("show_that_nothing_may_be_null", "MCP-04", TYPES, _schema(_never_null)),
    Mutant("show_unions_without_their_types", "MCP-04", TYPES, _schema(_bare_unions)),
    Mutant("refer_to_definitions_that_are_not_sent", "MCP-04", COMPLEX, _schema(_no_definitions)),
    Mutant("show_objects_without_their_fields", "MCP-04", COMPLEX, _schema(_bare_objects)),
    Mutant("show_lists_without_their_items", "MCP-04", COMPLEX, _schema(_bare_items)),
    Mutant("require_no_field_of_objects", "MCP-04", COMPLEX, _schema(_nested_required_lost)),
    Mutant("describe_nothing", "MCP-04", DOCSTRING, _described(lambda _: "")),
    Mutant("describe_with_the_first_line", "MCP-04", DOCSTRING, _described(lossy.first_line)),
    Mutant(
        "describe_without_line_breaks",
        "MCP-04",
        DOCSTRING,
        _described(lambda text: " ".join(text.split())),
    ),
    Mutant("describe_in_32_characters", "MCP-04", DOCSTRING, _described(lossy.cut(32))),
    Mutant(
        "describe_by_the_name",
        "MCP-04",
        DOCSTRING,
        _tools(lambda tool: {**tool, "description": tool["name"]}),
    ),
    Mutant(
        "take_only_the_first_item_of_a_complex_object",
        "MCP-04",
        COMPLEX,
        _order(lambda order: {**order, "items": order.get("items", [])[:1]}),
    ),
    Mutant(
        "lose_nested_fields_of_a_complex_object",
        "MCP-04",
        COMPLEX,
        _order(
            lambda order: {
                **order,
                "items": [{"name": item["name"]} for item in order.get("items", [])],
            }
        ),
    ),
    Mutant(
        "lose_white_space_in_a_complex_object",
        "MCP-04",
        COMPLEX,
        _order(lambda order: lossy.in_texts(order, str.strip)),
    ),
    Mutant(
        "take_the_first_value_of_an_enum_for_each",
        "MCP-04",
        TYPES,
        _argument("size", lambda _: "small"),
    ),
    Mutant("take_null_for_false", "MCP-04", TYPES, _argument("express", lambda one: one or None)),
    Mutant("take_false_for_null", "MCP-04", TYPES, _argument("express", bool)),
)
