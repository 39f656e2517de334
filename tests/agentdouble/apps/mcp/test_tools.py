"""Functions as tools: what is refused when it is decorated, and what the schema says."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agentdouble import MCPApp
from agentdouble.errors import DecorationError

pytestmark = pytest.mark.smoke


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    parts: list[Item] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Place(TypedDict):
    city: str


def bare(value, other: int) -> str:  # type: ignore[no-untyped-def]
    return ""


def many(*values: int) -> str:
    return ""


def further(**values: int) -> str:
    return ""


def unknown_type(value: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def no_schema(good: int, value: Callable[[], int]) -> str:
    return ""


def generator(value: int) -> Iterator[int]:
    yield value


async def stream(value: int) -> AsyncIterator[int]:
    yield value


REFUSED = [
    (bare, "its parameter 'value' has no annotation"),
    (many, "its parameter '*values: int' has no place in a schema"),
    (further, "its parameter '**values: int' has no place in a schema"),
    (unknown_type, "name 'Missing' is not defined"),
    (no_schema, "the type of its parameter 'value' has no JSON Schema"),
    (generator, "it yields, and a tool returns one value"),
    (stream, "it yields, and a tool returns one value"),
    (Item, "it is a class"),
    (3, "it is not a function"),
    (lambda: None, "'<lambda>' is no name of a tool"),
    (functools.partial(bare, 1), "'' is no name of a tool"),
]


@pytest.mark.parametrize(("function", "why"), REFUSED)
def test_a_function_that_can_be_no_tool_is_refused_when_it_is_decorated(
    function: Any, why: str
) -> None:
    """The message names the function and what is wrong, and nothing is registered."""
    app = MCPApp()

    with pytest.raises(DecorationError) as caught:
        app.tool(function)

    assert why in str(caught.value)
    assert ("tool", {}) == (caught.value.decorator, dict(app.tools))
    assert isinstance(caught.value, TypeError)


async def two(prompt: str, more: str = "") -> str:
    return prompt


async def other_name(text: str) -> str:
    return text


async def no_annotation(prompt) -> str:  # type: ignore[no-untyped-def]
    return ""


async def other_type(prompt: bytes) -> str:
    return ""


async def returns_dict(prompt: str) -> dict[str, str]:
    return {}


async def returns_anything(prompt: str):  # type: ignore[no-untyped-def]
    return ""


async def keyword_only(*, prompt: str) -> str:
    return ""


async def streams(prompt: str) -> AsyncIterator[str]:
    yield prompt


def sync_agent(prompt: str) -> str:
    return prompt


NO_AGENTS = [
    (two, "it takes prompt, more"),
    (other_name, "it takes text"),
    (no_annotation, "its prompt is not annotated as str"),
    (other_type, "its prompt is not annotated as str"),
    (returns_dict, "what it returns is not annotated as str"),
    (returns_anything, "what it returns is not annotated as str"),
    (keyword_only, "its prompt is no ordinary parameter"),
    (streams, "it is not an async function"),
    (sync_agent, "it is not an async function"),
    (None, "it is not an async function"),
]


@pytest.mark.parametrize(("function", "why"), NO_AGENTS)
def test_a_function_that_can_be_no_agent_is_refused(function: Any, why: str) -> None:
    """Only ``async (prompt: str) -> str`` is an agent as a tool."""
    app = MCPApp()

    with pytest.raises(DecorationError) as caught:
        app.agent_as_a_tool(function)

    assert why in str(caught.value)
    assert ("agent_as_a_tool", {}) == (caught.value.decorator, dict(app.tools))


def test_a_second_tool_of_a_name_is_refused() -> None:
    """The first one stays."""
    app = MCPApp("shop")
    first = app.tool(lookup)

    with pytest.raises(DecorationError, match="shop has a tool 'lookup' already"):
        app.tool(name="lookup")(sync_agent)

    assert first is app.tools["lookup"].function


def lookup(city: str) -> dict[str, str]:
    return {"city": city}


@pytest.mark.parametrize("name", ["", "two words", "größe", "x" * 129, "a/b", "a\n"])
def test_a_name_that_clients_refuse_is_refused(name: str) -> None:
    """A name has 1 to 128 letters, digits, dots, underscores and hyphens."""
    with pytest.raises(DecorationError, match="is no name of a tool"):
        MCPApp().tool(name=name)(lookup)


def test_the_decorated_function_stays_what_it_is() -> None:
    """Both forms return the function, and so does the agent's decorator."""
    app = MCPApp()

    async def agent(prompt: str) -> str:
        return prompt

    assert lookup is app.tool(lookup)
    assert lookup is app.tool(name="again", description="Look up.")(lookup)
    assert agent is app.agent_as_a_tool(agent)
    assert {"lookup": "", "again": "Look up.", "agent": ""} == {
        name: tool.description for name, tool in app.tools.items()
    }


def test_the_docstring_is_the_description() -> None:
    """It is cleaned of the indentation of the source."""
    app = MCPApp()

    @app.tool
    def described(value: int) -> int:
        """Say the value.

        As it is:
            indented.
        """
        return value

    assert "Say the value.\n\nAs it is:\n    indented." == app.tools["described"].description


def test_types_are_the_schema() -> None:
    """Simple types, defaults, optionals, enums, literals, fields, and names of every kind."""
    app = MCPApp()

    @app.tool
    def simple(
        text: str,
        count: Annotated[int, Field(ge=1, description="how many")] = 3,
        color: Color = Color.RED,
        mode: Literal["a", "b"] = "a",
        note: str | None = None,
        copy: bool = True,
        _hidden: float = 0.5,
        when: dt.date | None = None,
        marker: Any = object(),  # noqa: B008
        described: int = Field(7, gt=0),
    ) -> str:
        return text

    schema = app.tools["simple"].arguments.schema

    assert ["text"] == schema["required"]
    assert {"enum": ["red", "blue"], "title": "Color", "type": "string"} == schema["$defs"]["Color"]
    assert {
        "text": {"type": "string"},
        "count": {"type": "integer", "default": 3, "minimum": 1, "description": "how many"},
        "color": {"$ref": "#/$defs/Color", "default": "red"},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "copy": {"type": "boolean", "default": True},
        "_hidden": {"type": "number", "default": 0.5},
        "when": {
            "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
            "default": None,
        },
        "marker": {},
        "described": {"type": "integer", "default": 7, "exclusiveMinimum": 0},
    } == {name: untitled(one) for name, one in schema["properties"].items()}


def test_complex_objects_are_in_the_schema() -> None:
    """Models, dataclasses, TypedDicts and lists of them, recursive ones too."""
    app = MCPApp()

    @app.tool
    def complex_(item: Item, point: Point, places: list[Place]) -> Item:
        return item

    tool = app.tools["complex_"]
    schema = tool.arguments.schema

    assert {
        "item": {"$ref": "#/$defs/Item"},
        "point": {"$ref": "#/$defs/Point"},
        "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
    } == {name: untitled(one) for name, one in schema["properties"].items()}
    assert {"$ref": "#/$defs/Item"} == schema["$defs"]["Item"]["properties"]["parts"]["items"]
    assert {"x"} == set(schema["$defs"]["Point"]["required"])
    assert {"type": "object"}.items() <= (tool.results.schema or {}).items()


def test_types_that_are_local_are_found() -> None:
    """An annotation that is a string may name what only the decorating function knows."""
    app = MCPApp()

    class Local(BaseModel):
        value: int

    @app.tool()
    def use(local: Local) -> int:
        return local.value

    assert {"$ref": "#/$defs/Local"} == app.tools["use"].arguments.schema["properties"]["local"]


RETURNS = [
    (dict, {"type": "object", "additionalProperties": True}, False),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, False),
    (str, {"type": "string"}, True),
    (list[int], {"type": "array", "items": {"type": "integer"}}, True),
    (None, {"type": "null"}, True),
    (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
]


@pytest.mark.parametrize(("annotation", "schema", "wrapped"), RETURNS)
def test_results_have_a_schema(annotation: Any, schema: Any, wrapped: bool) -> None:
    """Objects are announced as they are, all else as ``result``."""

    def returning():  # type: ignore[no-untyped-def]
        return None

    returning.__annotations__ = {"return": annotation}
    app = MCPApp()
    app.tool(returning)

    announced = untitled(app.tools["returning"].results.schema or {})

    if wrapped:
        assert {"result"} == set(announced["required"])
        announced = untitled(announced["properties"]["result"])
    assert schema == announced


@pytest.mark.parametrize("annotation", [Any, type("Lock", (), {})])
def test_a_type_without_a_schema_announces_nothing(annotation: Any) -> None:
    """A tool may return what nobody can promise the shape of."""

    def returning():  # type: ignore[no-untyped-def]
        return None

    returning.__annotations__ = {"return": annotation}
    app = MCPApp()
    app.tool(returning)

    assert app.tools["returning"].results.schema is None


def untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}
