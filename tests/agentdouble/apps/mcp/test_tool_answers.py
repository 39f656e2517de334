"""Tool results as the official client reads them: it checks the declared structure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Audio, Image
from mcp.types import ImageContent, InputRequiredResult, TextContent

from agentdouble import MCPApp

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
