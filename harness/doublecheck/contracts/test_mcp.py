"""Checks of the tools of MCP applications, and of their results (MCP)."""

from __future__ import annotations

import inspect
import uuid
from typing import Any

from hypothesis import strategies as st

from doublecheck.client._sync.mcp import McpClient
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.mcp_servers import is_refused, structured_of, text_of, validator
from doublecheck.contracts.reference import tools as reference
from doublecheck.contracts.sentences import instead, listed, short

TOOLS = sorted(function.__name__ for function in (*reference.TOOLS, reference.AGENT))
NUMBERS = Input(st.integers(-(2**64), 2**64), (2**53 + 1, 0, -(2**63) - 1, -7, 2**64))
ITEM = {"name": "tea", "count": 2}
# the right values of each parameter, and wrong ones
PARAMETERS: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "add": dict.fromkeys("ab", ([1, -(2**64)], ["many", 1.5, None, [1]])),
    "join": dict.fromkeys(("first", "second"), (["a", ""], [1, None, ["a"]])),
    "facts": {"text": (["a"], [1, None])},
    "describe": {
        "ratio": ([0.5, 1], ["0.5", None]),
        "exact": ([True, False], ["yes", None]),
        "tags": ([["a"], []], ["a", [1], {}]),
        "fields": ([{"a": [1]}, {}], ["a", []]),
    },
    "place": {
        "order": (
            [{"customer": "ann", "items": [ITEM, {"name": ""}]}, {"customer": "ann"}],
            [
                *("ann", {}, {"items": [ITEM]}, {"customer": 1}, {"customer": "ann", "items": {}}),
                *({"customer": "ann", "items": [it]} for it in ("tea", {"count": 2})),
                *({"customer": "ann", "items": [{**ITEM, name: []}]} for name in ITEM),
            ],
        ),
        "size": (["small", "large"], ["huge", 1]),
        "express": ([None, True], ["soon"]),
    },
    "count": {"name": (["a"], [1, None])},
    "shout": {"prompt": (["a"], [1, None])},
}
OPTIONAL = ("second", "size", "express")
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
_RICH_ITEMS = [{"name": " tea\n"}, {"name": "", "count": 0}, {"name": "ü", "count": 7}]
_RICH_ORDER = {"customer": inputs.RICH, "items": _RICH_ITEMS}
ORDERS = Input(
    st.fixed_dictionaries(
        {"order": st.fixed_dictionaries({"customer": _TEXTS}, optional={"items": _ITEMS})},
        optional={
            "size": st.sampled_from(["small", "large"]),
            "express": st.sampled_from([None, True, False]),
        },
    ),
    (
        {"order": _RICH_ORDER, "size": "large", "express": False},
        {"order": {"customer": ""}, "express": None},
        {"order": {"customer": "ann", "items": []}, "size": "small", "express": True},
        {"order": {"customer": "ann", "items": [{"name": "a"}]}},
        {"order": {"customer": "", "items": [{"name": f"{n}"} for n in range(inputs.MANY)]}},
    ),
)


@clause("MCP-03")
def test_tools_are_the_registered_functions(mcp_client: McpClient) -> None:
    """Exactly the registered functions are listed, once each, every time."""
    for _ in range(6):
        names = sorted(tool.name for tool in mcp_client.tools())
        assert TOOLS == names, f"other tools are listed: {instead(names, TOOLS)}"


@clause("MCP-03")
@for_each(a=NUMBERS, b=NUMBERS, text=inputs.texts())
def test_functions_are_called(mcp_client: McpClient, a: int, b: int, text: str) -> None:
    """A sync and an async function receive the arguments of the call, whole, or their default."""
    _require_text(mcp_client, str(a + b), "add", a=a, b=b)
    _require_text(mcp_client, f"{text}!", "join", first=text)
    _require_text(mcp_client, f"{text} {text}", "join", first=text, second=f" {text}")
    _require_text(mcp_client, text, "join", first=text, second="")
    tags = ["", text[:100], *(f"{n % 7}" for n in range(inputs.MANY)), "", "last"]
    arguments = {"ratio": 0.5, "exact": True, "tags": tags, "fields": {"mixed": inputs.MIXED}}
    _require_object(mcp_client, arguments, "describe", **arguments)


@clause("MCP-03")
def test_each_call_runs_the_function(mcp_client: McpClient) -> None:
    """A call with the same arguments runs the function again, also after a call that failed."""
    name = uuid.uuid4().hex
    counts = [text_of(mcp_client.call("count", name=name)) for _ in range(3)]
    assert is_refused(mcp_client, "count", {}), "a call without an argument succeeded"
    counts.append(text_of(mcp_client.call("count", name=name)))

    assert ["1", "2", "3", "4"] == counts, "some calls do not run the function"


@clause("MCP-03")
def test_a_call_that_cannot_be_made_is_an_error(mcp_client: McpClient) -> None:
    """Unknown tools and wrong arguments return an error; the next call succeeds."""
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("nobodys", {}), ("Add", {"a": 1, "b": 2}), ("join", {})),
        *(("add", {"a": "many", "b": 1}), ("add", {"a": 1}), ("add", {"a": None, "b": 1})),
        ("place", {"order": {"items": []}}),
        ("place", {"order": {"customer": "ann"}, "size": "huge"}),
    )
    for name, arguments in wrong:
        assert is_refused(mcp_client, name, arguments), f"{name}({arguments}) succeeded"
        names = sorted(tool.name for tool in mcp_client.tools())
        assert TOOLS == names, f"after a call that failed the tools are {listed(names)}"
        _require_text(mcp_client, "5", "add", a=2, b=3)


@clause("MCP-04")
def test_types_are_the_schema(mcp_client: McpClient) -> None:
    """A schema has each parameter, with its type; those without a default are required."""
    for name in TOOLS:
        _require_schema(mcp_client, name)


@clause("MCP-04")
def test_docstrings_are_the_descriptions(mcp_client: McpClient) -> None:
    """The description is the whole docstring, with line breaks. Its indentation is left open."""
    described = {
        tool.name: inspect.cleandoc(tool.description).strip() for tool in mcp_client.tools()
    }

    actual = {name: described.get(name) for name in DESCRIPTIONS}
    assert DESCRIPTIONS == actual, f"another description: {instead(actual, DESCRIPTIONS)}"


@clause("MCP-04")
@for_each(arguments=ORDERS)
def test_a_complex_object_arrives_as_such(mcp_client: McpClient, arguments: dict[str, Any]) -> None:
    """The function receives the object, with its defaults, and the member of the enum."""
    items = [{"count": 1, **item} for item in arguments["order"].get("items", [])]
    order = {**arguments["order"], "items": items}
    expected = {"size": "small", "express": None, **arguments, "order": order}

    _require_object(mcp_client, expected, "place", **arguments)


@clause("MCP-05")
@for_each(text=inputs.texts(), fields=inputs.payloads())
def test_a_dict_arrives(mcp_client: McpClient, text: str, fields: dict[str, Any]) -> None:
    """Every value that a sync or an async function returns arrives unchanged, with its type."""
    nested = {"list": [1, True, "x"]}
    facts = {"text": text, "number": 1.5, "nothing": None, "nested": nested}
    arguments = {"ratio": 0.25, "exact": True, "fields": fields}

    _require_object(mcp_client, facts, "facts", text=text)
    for tags in ([" ü\n", ""], [], inputs.many("tag {}")):
        described = {**arguments, "tags": tags}
        _require_object(mcp_client, described, "describe", **described)


@clause("MCP-06")
def test_an_agent_is_a_tool_that_takes_a_prompt(mcp_client: McpClient) -> None:
    """The schema has only the prompt, which is required. The docstring is the description."""
    description = _require_schema(mcp_client, "shout")

    expected, actual = DESCRIPTIONS["shout"], inspect.cleandoc(description)
    assert expected == actual, f"another description: {instead(actual, expected)}"


@clause("MCP-06")
@for_each(prompt=inputs.texts())
def test_an_agent_is_asked_by_its_tool(mcp_client: McpClient, prompt: str) -> None:
    """The agent receives the whole prompt, and its string is the result."""
    _require_text(mcp_client, prompt.upper(), "shout", prompt=prompt)


def _require_text(client: McpClient, expected: str, tool: str, **arguments: Any) -> None:
    text = text_of(client.call(tool, **arguments))
    assert expected == text, f"{tool} returns {instead(text, expected)}"


def _require_object(client: McpClient, expected: Any, tool: str, **arguments: Any) -> None:
    actual = structured_of(client.call(tool, **arguments))
    assert wire.same(expected, actual), f"{tool} returns an object {instead(actual, expected)}"


def _require_schema(client: McpClient, name: str) -> str:
    """Fail unless a tool's schema accepts right arguments only. Return its description."""
    tools = [tool for tool in client.tools() if tool.name == name]
    assert 1 == len(tools), f"{name} is listed {len(tools)} times"
    schema, parameters = tools[0].input_schema, PARAMETERS[name]
    accepts = validator(schema).is_valid
    named = sorted(schema.get("properties", ()))
    assert sorted(parameters) == named, f"the schema of {name} has the parameters {listed(named)}"
    arguments = {parameter: right[0] for parameter, (right, _) in parameters.items()}
    for parameter, (right, wrong) in parameters.items():
        others = {key: value for key, value in arguments.items() if key != parameter}
        says = "requires" if parameter in OPTIONAL else "does not require"
        is_right = accepts(others) == (parameter in OPTIONAL)
        assert is_right, f"the schema of {name} {says} {parameter}"
        for value in (*right, *wrong):
            is_right = value in right
            says = "refuses" if is_right else "accepts"
            assert is_right == accepts({**others, parameter: value}), (
                f"the schema of {name} {says} {parameter}={short(value)}"
            )
    return tools[0].description
