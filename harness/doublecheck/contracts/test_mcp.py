"""Checks of the tools of MCP applications, and of their results (MCP)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from doublecheck.client._sync.protocols import McpClient
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.mcp_servers import is_refused, structured_of, text_of
from doublecheck.contracts.reference import tools as reference
from doublecheck.values.agents import McpTool

TOOLS = sorted(function.__name__ for function in (*reference.TOOLS, reference.AGENT))
NUMBERS = Input(st.integers(-(2**64), 2**64), (2**53 + 1, 0, -(2**63) - 1, -7, 2**64))
WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add", {"a": "many", "b": 1}),
    ("add", {"a": 1}),
    ("add", {"a": None, "b": 1}),
    ("join", {}),
    ("place", {"order": {"items": []}}),
    ("place", {"order": {"customer": "ann"}, "size": "huge"}),
)


@clause("MCP-03")
def test_tools_are_the_registered_functions(mcp_client: McpClient) -> None:
    """Exactly the registered functions are listed, once each, every time."""
    for _ in range(6):
        assert TOOLS == sorted(tool.name for tool in mcp_client.tools())


@clause("MCP-03")
@for_each(a=NUMBERS, b=NUMBERS)
def test_a_sync_function_is_called(mcp_client: McpClient, a: int, b: int) -> None:
    """A sync function receives the numbers that were sent, and its result belongs to this call."""
    assert str(a + b) == text_of(mcp_client.call("add", a=a, b=b))


@clause("MCP-03")
@for_each(first=inputs.texts())
def test_an_async_function_is_called(mcp_client: McpClient, first: str) -> None:
    """An async function receives whole texts, or its default; its result arrives complete."""
    assert f"{first}!" == text_of(mcp_client.call("join", first=first))
    assert f"{first} {first}" == text_of(mcp_client.call("join", first=first, second=f" {first}"))
    assert first == text_of(mcp_client.call("join", first=first, second=""))


@clause("MCP-03")
def test_a_call_that_cannot_be_made_is_an_error(mcp_client: McpClient) -> None:
    """Unknown tools and wrong arguments return an error; the next call succeeds."""
    for name, arguments in (("nobodys", {}), ("Add", {"a": 1, "b": 2}), *WRONG):
        assert is_refused(mcp_client, name, arguments), f"{name}({arguments}) succeeded"
        assert "5" == text_of(mcp_client.call("add", a=2, b=3))


@clause("MCP-05")
@for_each(text=inputs.texts())
def test_a_dict_of_an_async_function_arrives(mcp_client: McpClient, text: str) -> None:
    """Texts, numbers, null, lists and nested dicts arrive as they were returned."""
    nested = {"list": [1, True, "x"]}
    expected = {"text": text, "number": 1.5, "nothing": None, "nested": nested}

    assert wire.same(expected, structured_of(mcp_client.call("facts", text=text)))


@clause("MCP-05")
@for_each(fields=inputs.payloads())
def test_a_dict_of_a_sync_function_arrives(mcp_client: McpClient, fields: dict[str, Any]) -> None:
    """Every value arrives as it was returned, with its type."""
    arguments = {"ratio": 0.25, "exact": True, "tags": [" ü\n", ""], "fields": fields}

    assert wire.same(arguments, structured_of(mcp_client.call("describe", **arguments)))
    placed = structured_of(mcp_client.call("place", order={"customer": "ann"}))
    order = {"customer": "ann", "items": []}
    assert wire.same({"order": order, "size": "small", "express": None}, placed)


@clause("MCP-06")
def test_an_agent_is_a_tool_that_takes_a_prompt(mcp_client: McpClient) -> None:
    """The schema has only the prompt, which is required. The docstring is the description."""
    matches = [tool for tool in mcp_client.tools() if tool.name == "shout"]
    assert 1 == len(matches), f"it is listed {len(matches)} times"
    tool, properties = matches[0], matches[0].input_schema.get("properties", {})

    assert ["prompt"] == list(properties)
    assert "string" == properties["prompt"].get("type"), json.dumps(tool.input_schema)
    assert ["prompt"] == tool.input_schema.get("required")
    assert "Answer in capitals; nothing else." == inspect.cleandoc(tool.description)


@clause("MCP-06")
@for_each(prompt=inputs.texts())
def test_an_agent_is_asked_by_its_tool(mcp_client: McpClient, prompt: str) -> None:
    """The agent receives the whole prompt, and its string is the result."""
    assert prompt.upper() == text_of(mcp_client.call("shout", prompt=prompt))


Schema = Mapping[str, Any]

DESCRIPTIONS = {
    "add": "Add two numbers.",
    "join": "Join two texts.\n\nThe second one is\noptional.",
    "place": "Place an order.",
    "facts": "Return a dict of all kinds of values.",
    "describe": "Return every argument as it arrived.",
    "shout": "Answer in capitals; nothing else.",
}
_TEXTS = inputs.texts(long=5000).strategy
_ITEMS = st.lists(
    st.fixed_dictionaries({"name": _TEXTS}, optional={"count": st.integers(-5, 2**40)}), max_size=3
)
ORDERS = Input(
    st.fixed_dictionaries(
        {"order": st.fixed_dictionaries({"customer": _TEXTS}, optional={"items": _ITEMS})},
        optional={
            "size": st.sampled_from(["small", "large"]),
            "express": st.sampled_from([None, True, False]),
        },
    ),
    (
        {
            "order": {
                "customer": inputs.RICH,
                "items": [{"name": " tea\n"}, {"name": "", "count": 0}, {"name": "ü", "count": 7}],
            },
            "size": "large",
            "express": False,
        },
        {"order": {"customer": ""}, "express": None},
        {"order": {"customer": "ann", "items": []}, "size": "small", "express": True},
        {"order": {"customer": "ann", "items": [{"name": "a"}]}},
    ),
)


@clause("MCP-04")
def test_types_are_the_schema(mcp_client: McpClient) -> None:
    """Each parameter has its type, and parameters without a default are required."""
    tools = mcp_client.tools()

    assert ({"a": "integer", "b": "integer"}, ["a", "b"]) == _takes(tools, "add")
    assert ({"first": "string", "second": "string"}, ["first"]) == _takes(tools, "join")
    assert ({"text": "string"}, ["text"]) == _takes(tools, "facts")
    kinds = {"ratio": "number", "exact": "boolean", "tags": "array", "fields": "object"}
    assert (kinds, sorted(kinds)) == _takes(tools, "describe")
    tags = _property(_schema(tools, "describe"), "tags")
    assert "string" == _described(tags.get("items")).get("type"), tags


@clause("MCP-04")
def test_docstrings_are_the_descriptions(mcp_client: McpClient) -> None:
    """The description is the whole docstring, with line breaks. Its indentation is left open."""
    described = {
        tool.name: inspect.cleandoc(tool.description).strip() for tool in mcp_client.tools()
    }

    assert DESCRIPTIONS == {name: described.get(name) for name in DESCRIPTIONS}


@clause("MCP-04")
def test_a_complex_object_is_in_the_schema(mcp_client: McpClient) -> None:
    """The schema has the nested objects, an enum and an optional parameter."""
    schema = _schema(mcp_client.tools(), "place")
    order, size = _property(schema, "order"), _property(schema, "size")
    items = _property(order, "items")
    item = _described(items.get("items"))

    assert (["order"], ["customer"]) == (schema.get("required"), order.get("required"))
    assert ("object", "array", "object") == tuple(part.get("type") for part in (order, items, item))
    assert "string" == _property(order, "customer").get("type")
    assert {"name": "string", "count": "integer"} == _types(item)
    assert ["name"] == item.get("required")
    assert ["large", "small"] == sorted(_values(size))
    assert {"boolean", "null"} == _alternatives(_property(schema, "express"))


@clause("MCP-04")
@for_each(arguments=ORDERS)
def test_a_complex_object_arrives_as_such(mcp_client: McpClient, arguments: dict[str, Any]) -> None:
    """The function receives the object, with its defaults, and the member of the enum."""
    items = [{"count": 1, **item} for item in arguments["order"].get("items", [])]
    order = {**arguments["order"], "items": items}
    expected = {"size": "small", "express": None, **arguments, "order": order}

    assert wire.same(expected, structured_of(mcp_client.call("place", **arguments)))


def _takes(tools: Any, name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the types of a tool's parameters, and the required ones."""
    schema = _schema(tools, name)
    return _types(schema), sorted(schema.get("required", []))


def _schema(tools: Any, name: str) -> Schema:
    matches: list[McpTool] = [tool for tool in tools if tool.name == name]
    assert matches, f"tool {name!r} is not among {', '.join(tool.name for tool in tools)}"
    return _described(_resolved(matches[0].input_schema, matches[0].input_schema))


def _property(schema: Schema, name: str) -> Schema:
    return _described(_described(schema.get("properties")).get(name))


def _described(schema: Any) -> Schema:
    assert isinstance(schema, dict), f"no schema: {json.dumps(schema)}"
    return schema


def _types(schema: Schema) -> dict[str, Any]:
    return {name: kind.get("type") for name, kind in _described(schema.get("properties")).items()}


def _values(schema: Schema) -> list[Any]:
    """Return the values that a schema allows, in either notation."""
    if "enum" in schema:
        return list(schema["enum"])
    return [option.get("const") for option in schema.get("oneOf", schema.get("anyOf", ()))]


def _alternatives(schema: Schema) -> set[str]:
    """Return the types that a schema allows, in either notation."""
    if "anyOf" in schema or "oneOf" in schema:
        return {option.get("type") for option in schema.get("anyOf") or schema["oneOf"]}
    kinds = schema.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _resolved(schema: Any, root: Any) -> Any:
    """Return a schema with its references resolved. It must not be recursive.

    A single schema in ``allOf`` is equivalent to that schema.
    """
    if isinstance(schema, list):
        return [_resolved(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    named = schema.get("$ref")
    if isinstance(named, str):
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_target(named, root), **siblings}
    if len(schema.get("allOf", ())) == 1:
        schema = {**schema["allOf"][0], **{k: v for k, v in schema.items() if k != "allOf"}}
        return _resolved(schema, root)
    return {key: _resolved(value, root) for key, value in schema.items() if key != "$defs"}


def _target(named: str, root: Any) -> Any:
    target = root
    for step in named.removeprefix("#").strip("/").split("/"):
        assert isinstance(target, dict), f"{named} leads nowhere: {json.dumps(root)}"
        assert step in target, f"{named} leads nowhere: {json.dumps(root)}"
        target = target[step]
    return target
