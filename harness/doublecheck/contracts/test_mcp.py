"""Checks of MCP applications (MCP)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.clauses import clause
from doublecheck.values.agents import McpResult, McpTool

TOOLS = ["add", "facts", "join", "place", "shout"]


@pytest.fixture
def mcp(platform: Platform) -> Iterator[McpClient]:
    """A client of the reference tools."""
    with platform.mcp() as mcp:
        yield mcp


@clause("MCP-03")
def test_tools_are_the_registered_functions(mcp: McpClient) -> None:
    """Exactly these tools are listed, and a sync and an async one are called."""
    assert TOOLS == sorted(tool.name for tool in mcp.tools())

    assert "5" == _text(mcp.call("add", a=2, b=3))
    assert "a!" == _text(mcp.call("join", first="a"))
    assert "ab" == _text(mcp.call("join", first="a", second="b"))


@clause("MCP-04")
def test_types_are_the_schema_and_the_docstring_is_the_description(mcp: McpClient) -> None:
    """The schema has simple types, defaults, an enum, an optional and a nested object."""
    tools = {tool.name: tool for tool in mcp.tools()}

    assert ({"a": "integer", "b": "integer"}, ["a", "b"]) == _takes(tools, "add")
    assert ({"first": "string", "second": "string"}, ["first"]) == _takes(tools, "join")
    assert "Join two texts.\n\nThe second one is\noptional." == _description(tools, "join")


@clause("MCP-04")
def test_a_complex_object_is_in_the_schema(mcp: McpClient) -> None:
    """The schema has the nested objects, an enum and an optional parameter."""
    place = _schema({tool.name: tool for tool in mcp.tools()}, "place")
    order, size = _property(place, "order"), _property(place, "size")
    item = _property(order, "items").get("items", {})

    assert (["order"], ["customer"]) == (place.get("required"), order.get("required"))
    assert {"name": "string", "count": "integer"} == _types(item)
    assert ["small", "large"] == size.get("enum")
    assert {"boolean", "null"} == _alternatives(_property(place, "express"))


@clause("MCP-04")
def test_a_complex_object_arrives_as_such(mcp: McpClient) -> None:
    """The function gets the object, with its defaults, and the member of the enum."""
    order = {"customer": "ann", "items": [{"name": "tea"}, {"name": "cup", "count": 2}]}

    placed = _structured(mcp.call("place", order=order, size="large"))

    order["items"][0]["count"] = 1  # type: ignore[index]
    assert {"order": order, "size": "large", "express": None} == placed


@clause("MCP-05")
def test_a_dict_arrives_as_structured_content(mcp: McpClient) -> None:
    """Every value arrives as it was returned."""
    nested = {"list": [1, True, "x"]}
    expected = {"text": "ü", "number": 1.5, "nothing": None, "nested": nested}

    assert expected == _structured(mcp.call("facts", text="ü"))


@clause("MCP-06")
def test_an_agent_is_a_tool_that_takes_a_prompt(mcp: McpClient) -> None:
    """Its schema has only the prompt, and its docstring is the description."""
    tools = {tool.name: tool for tool in mcp.tools()}

    assert ({"prompt": "string"}, ["prompt"]) == _takes(tools, "shout")
    assert "Answer in capitals; nothing else." == _description(tools, "shout")
    assert "HELLO" == _text(mcp.call("shout", prompt="hello"))


def _text(result: McpResult) -> str:
    assert not result.is_error, result.text
    return result.text


def _structured(result: McpResult) -> Mapping[str, Any]:
    assert not result.is_error, result.text
    assert result.structured is not None, f"no structured content: {json.dumps(result.content)}"
    return result.structured


def _takes(tools: Mapping[str, McpTool], name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the types of a tool's parameters, and the required ones."""
    schema = _schema(tools, name)
    return _types(schema), sorted(schema.get("required", []))


def _schema(tools: Mapping[str, McpTool], name: str) -> dict[str, Any]:
    assert name in tools, f"there is no tool {name!r} among {', '.join(tools)}"
    schema: dict[str, Any] = _resolved(tools[name].input_schema)
    return schema


def _description(tools: Mapping[str, McpTool], name: str) -> str:
    return inspect.cleandoc(tools[name].description)


def _property(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    assert name in properties, f"{name!r} is not in the schema: {json.dumps(schema)}"
    found: dict[str, Any] = properties[name]
    return found


def _types(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: one.get("type") for name, one in properties.items()}


def _alternatives(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema allows, in either notation."""
    if "anyOf" in schema:
        return {one.get("type") for one in schema["anyOf"]}
    return set(schema.get("type", ()))


def _resolved(schema: Any, root: Any = None) -> Any:
    """Return a schema with its references resolved; it must not be recursive."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [_resolved(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    named = schema.get("$ref")
    if isinstance(named, str):
        target = root
        for step in named.removeprefix("#/").split("/"):
            target = target[step]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {key: _resolved(value, root) for key, value in schema.items() if key != "$defs"}
