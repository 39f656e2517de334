"""Checks of the tools of MCP applications, and of their results (MCP)."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.mcp import McpClient
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import Input, for_each
from doublecheck.contracts.mcp_servers import is_refused, structured_of, text_of
from doublecheck.contracts.reference import tools as reference

TOOLS = sorted(function.__name__ for function in (*reference.TOOLS, reference.AGENT))
NUMBERS = Input(st.integers(-(2**53) + 1, 2**53 - 1), (-(2**53) + 2, 0, 3, -7))
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
    """Exactly these tools are listed, each once, and again when they are asked for again."""
    assert TOOLS == sorted(tool.name for tool in mcp_client.tools())
    assert TOOLS == sorted(tool.name for tool in mcp_client.tools())


@clause("MCP-03")
@for_each(a=NUMBERS, b=NUMBERS)
def test_a_sync_function_is_called(mcp_client: McpClient, a: int, b: int) -> None:
    """It gets the numbers that were sent, and its result is the one of this call."""
    assert str(a + b) == text_of(mcp_client.call("add", a=a, b=b))


@clause("MCP-03")
@for_each(first=inputs.texts())
def test_an_async_function_is_called(mcp_client: McpClient, first: str) -> None:
    """It gets the texts that were sent, whole, or its default; its result arrives whole."""
    assert f"{first}!" == text_of(mcp_client.call("join", first=first))
    assert f"{first} {first}" == text_of(mcp_client.call("join", first=first, second=f" {first}"))
    assert first == text_of(mcp_client.call("join", first=first, second=""))


@clause("MCP-03")
def test_each_function_is_called_by_its_name(mcp_client: McpClient) -> None:
    """In any order, and more than once."""
    for word in ("one", "two"):
        assert f"{word}!" == text_of(mcp_client.call("join", first=word))
        assert word == structured_of(mcp_client.call("facts", text=word)).get("text")
        assert word.upper() == text_of(mcp_client.call("shout", prompt=word))
        assert "5" == text_of(mcp_client.call("add", a=2, b=3))
        placed = structured_of(mcp_client.call("place", order={"customer": word})).get("order")
        assert {"customer": word, "items": []} == placed


@clause("MCP-03")
def test_a_call_that_cannot_be_made_is_an_error(mcp_client: McpClient) -> None:
    """A tool that nobody registered, and wrong arguments; the next call is answered."""
    for name, arguments in (("nobodys", {}), ("Add", {"a": 1, "b": 2}), *WRONG):
        assert is_refused(mcp_client, name, arguments), f"{name}({arguments}) is told as a success"
        assert "5" == text_of(mcp_client.call("add", a=2, b=3))


@clause("MCP-05")
@for_each(text=inputs.texts())
def test_a_dict_of_an_async_function_arrives(mcp_client: McpClient, text: str) -> None:
    """Every value arrives as it was returned: texts, numbers, null, lists, nested dicts."""
    nested = {"list": [1, True, "x"]}
    expected = {"text": text, "number": 1.5, "nothing": None, "nested": nested}

    assert wire.same(expected, structured_of(mcp_client.call("facts", text=text)))


@clause("MCP-05")
@for_each(fields=inputs.payloads())
def test_a_dict_of_a_sync_function_arrives(mcp_client: McpClient, fields: dict[str, Any]) -> None:
    """Every value arrives as it was returned, with its type."""
    given = {"ratio": 0.25, "exact": True, "tags": [" ü\n", ""], "fields": fields}

    assert wire.same(given, structured_of(mcp_client.call("describe", **given)))
    placed = structured_of(mcp_client.call("place", order={"customer": "ann"}))
    order = {"customer": "ann", "items": []}
    assert wire.same({"order": order, "size": "small", "express": None}, placed)


@clause("MCP-06")
def test_an_agent_is_a_tool_that_takes_a_prompt(mcp_client: McpClient) -> None:
    """Its schema has only the prompt, which is required, and its docstring is the description."""
    found = [tool for tool in mcp_client.tools() if tool.name == "shout"]
    assert 1 == len(found), f"it is listed {len(found)} times"
    tool, properties = found[0], found[0].input_schema.get("properties", {})

    assert ["prompt"] == list(properties)
    assert "string" == properties["prompt"].get("type"), json.dumps(tool.input_schema)
    assert ["prompt"] == tool.input_schema.get("required")
    assert "Answer in capitals; nothing else." == inspect.cleandoc(tool.description)


@clause("MCP-06")
@for_each(prompt=inputs.texts())
def test_an_agent_is_asked_by_its_tool(mcp_client: McpClient, prompt: str) -> None:
    """The agent gets the whole prompt, and its string is the result."""
    assert prompt.upper() == text_of(mcp_client.call("shout", prompt=prompt))


@clause("MCP-06")
@pytest.mark.parametrize("given", [{}, {"prompt": None}, {"prompt": ["a"]}], ids=str)
def test_an_agent_is_not_asked_without_a_prompt(
    mcp_client: McpClient, given: dict[str, Any]
) -> None:
    """The prompt is required, and a text; the agent is asked with the next one."""
    assert is_refused(mcp_client, "shout", given)
    assert "NEXT" == text_of(mcp_client.call("shout", prompt="next"))
