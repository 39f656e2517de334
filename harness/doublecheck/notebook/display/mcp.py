"""The display of MCP tools and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doublecheck.notebook.display.markup import (
    BAD,
    Markup,
    badge,
    box,
    clipped,
    code,
    element,
    folded,
    image_of,
    pre,
    quiet,
    title,
)
from doublecheck.notebook.display.trees import tree
from doublecheck.notebook_repr import counted

if TYPE_CHECKING:
    from doublecheck.values.agents import McpResult, McpTool


def tool(shown: McpTool) -> Markup:
    """Return a tool: its signature, its description, and its folded schemas."""
    return box(_tool(shown))


def tools(shown: Sequence[McpTool]) -> Markup:
    """Return the tools of a server."""
    return box(title(counted(len(shown), "tool")), *map(_tool, shown))


def result(shown: McpResult) -> Markup:
    """Return a tool's result: its blocks, and its folded structured content."""
    structured = shown.structured
    return box(
        title("", badge("error", BAD)) if shown.is_error else None,
        *(_block(block, BAD if shown.is_error else None) for block in shown.content),
        None if structured is None else tree(structured, name="structured", opened=0),
    )


def _tool(shown: McpTool) -> Markup:
    schemas = [tree(shown.input_schema, name="takes", opened=2)]
    if shown.output_schema is not None:
        schemas.append(tree(shown.output_schema, name="returns", opened=2))
    return element(
        "div",
        element("b", code(shown.signature)),
        element("div", clipped(shown.description, 2000), style="white-space:pre-wrap"),
        folded(quiet("schemas"), *schemas),
        style="margin:.3em 0 .6em",
    )


def _block(block: Mapping[str, Any], tone: str | None) -> Markup:
    kind = str(block.get("type"))
    if kind == "text":
        return pre(clipped(str(block.get("text")), whole="result.text"), tone=tone)
    drawn = image_of(str(block.get("mimeType")), str(block.get("data")))
    return (kind == "image" and drawn) or tree(block, name=kind, opened=0)
