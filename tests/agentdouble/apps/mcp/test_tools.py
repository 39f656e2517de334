"""Functions as tools: errors at decoration, schemas that clients see, and results."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Audio, Image
from mcp.types import ImageContent, InputRequiredResult, TextContent
from pydantic import BaseModel
from typing_extensions import TypedDict

from agentdouble import MCPApp
from agentdouble.errors import DecorationError
from tests.agentdouble.apps.mcp.sample import Item


def bare(value, other: int) -> str:  # type: ignore[no-untyped-def]
    return ""


def variadic(*values: int) -> str:
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
    (variadic, "its parameter '*values: int' cannot be in a schema"),
    (further, "its parameter '**values: int' cannot be in a schema"),
    (unknown_type, "name 'Missing' is not defined"),
    (no_schema, "Cannot generate a JsonSchema"),
    (generator, "it is a generator, but a tool returns one value"),
    (stream, "it is a generator, but a tool returns one value"),
    (Item, "it is a class"),
    (3, "it is not a function"),
    (lambda: None, "'<lambda>' is not a valid tool name"),
    (functools.partial(bare, 1), "'' is not a valid tool name"),
]


@pytest.mark.smoke
@pytest.mark.parametrize(("function", "reason"), REFUSED)
def test_invalid_tool_is_refused_at_decoration(function: Any, reason: str) -> None:
    """The error names the function and the problem, and nothing is registered."""
    app = MCPApp()

    with pytest.raises(DecorationError) as caught:
        app.tool(function)

    assert reason in str(caught.value)
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
    (returns_dict, "its return type is not annotated as str"),
    (returns_anything, "its return type is not annotated as str"),
    (keyword_only, "its prompt must be an ordinary parameter"),
    (streams, "it is not an async function"),
    (sync_agent, "it is not an async function"),
    (None, "it is not an async function"),
]


@pytest.mark.smoke
@pytest.mark.parametrize(("function", "reason"), NO_AGENTS)
def test_invalid_agent_is_refused(function: Any, reason: str) -> None:
    """Only ``async (prompt: str) -> str`` is an agent as a tool."""
    app = MCPApp()

    with pytest.raises(DecorationError) as caught:
        app.agent_as_a_tool(function)

    assert reason in str(caught.value)
    assert ("agent_as_a_tool", {}) == (caught.value.decorator, dict(app.tools))


def lookup(city: str) -> dict[str, str]:
    return {"city": city}


@pytest.mark.smoke
def test_decorated_function_is_returned_unchanged() -> None:
    """By both forms, and by the agent's decorator."""
    app = MCPApp()

    async def agent(prompt: str) -> str:
        return prompt

    assert lookup is app.tool(lookup)
    assert lookup is app.tool(name="again", description="Look up.")(lookup)
    assert agent is app.agent_as_a_tool(agent)
    assert {"lookup": lookup, "again": lookup, "agent": agent} == app.tools


class Place(TypedDict):
    city: str


@pytest.mark.smoke
def test_types_are_the_schema() -> None:
    """Those of parameters and of the result; the dedented docstring is the description."""
    app = MCPApp()

    class Local(BaseModel):
        value: int

    @app.tool
    def described(local: Local, places: list[Place], count: int = 3, copy: bool = True) -> Local:
        """Say the value.

        As it is:
            indented.
        """
        return local

    async def listed() -> Any:
        async with Client(app.server) as client:
            return (await client.list_tools()).tools[0]

    tool = asyncio.run(listed())
    properties = tool.input_schema["properties"]

    assert "Say the value.\n\nAs it is:\n    indented." == tool.description
    assert ["local", "places"] == tool.input_schema["required"]
    assert {"$ref": "#/$defs/Local"} == properties["local"]
    assert {"$ref": "#/$defs/Place"} == properties["places"]["items"]
    assert (3, "boolean") == (properties["count"]["default"], properties["copy"]["type"])
    assert ["value"] == tool.output_schema["required"]


TEXT = TextContent(text="a")
PICTURE = ImageContent(data="aGk=", mime_type="image/png")
IMAGE, SOUND = Image(data=b"hi", format="png"), Audio(data=b"hi", format="wav")


def called(function: Any) -> tuple[bool, list[str], Any]:
    """Return whether a structure is declared, the kinds of content, and the structure."""
    app = MCPApp()
    app.tool(name="made")(function)

    async def ask() -> Any:
        async with Client(app.server) as client:
            (tool,) = (await client.list_tools()).tools
            result = await client.call_tool("made", {})
            kinds = [item.text if item.type == "text" else item.type for item in result.content]
            return tool.output_schema is not None, kinds, result.structured_content

    result: tuple[bool, list[str], Any] = asyncio.run(ask())
    return result


def _anything() -> list[Any]:
    return [TEXT, PICTURE, "b"]


def _image() -> Image:
    return IMAGE


def _unannotated():  # type: ignore[no-untyped-def]
    return ["a", IMAGE, SOUND, {"b": 1}]


def _rounds() -> dict[str, int] | InputRequiredResult:
    return {"a": 1}


@pytest.mark.parametrize(
    ("function", "announced", "content"),
    [
        (_anything, True, ["a", "image", "b"]),
        (_image, False, ["image"]),
        (_unannotated, False, ["a", "image", "audio", '{\n  "b": 1\n}']),
        (_rounds, True, ['{\n  "a": 1\n}']),
    ],
)
def test_content_and_values_may_be_mixed(
    function: Any, announced: bool, content: list[str]
) -> None:
    """The SDK's helpers become content; the declared structure is present."""
    is_error, kinds, structured = called(function)

    assert (announced, content, announced) == (is_error, kinds, structured is not None)
