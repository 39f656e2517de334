"""What a call of a tool is answered with: content of the SDK, or a value as text and structure."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Audio, Image
from mcp.types import CallToolResult, ContentBlock, InputRequiredResult, TextContent

from agentdouble.apps.mcp.tools import Tool

Answer = CallToolResult | InputRequiredResult
_PLAIN = frozenset((bool, dict, float, int, str, type(None)))  # most tools return one of these


def answer_of(tool: Tool, value: Any) -> Answer:
    """Return the answer for what a tool has returned; raise ToolResultError."""
    if type(value) in _PLAIN:
        return _plain(tool, value)
    if isinstance(value, CallToolResult | InputRequiredResult):
        return value
    given = value if isinstance(value, list | tuple) else [value]
    blocks = [_block(one) for one in given]
    if any(isinstance(one, ContentBlock) for one in blocks):
        return _with_content(tool, value, blocks)
    return _plain(tool, value)


def failure(text: str) -> CallToolResult:
    """Return the answer of a tool that has failed."""
    return CallToolResult(content=_texts([text]), is_error=True)


def _plain(tool: Tool, value: Any) -> CallToolResult:
    result = tool.results.result_of(value)
    return CallToolResult(content=_texts(result.texts), structured_content=result.structured)


def _with_content(tool: Tool, value: Any, blocks: list[Any]) -> CallToolResult:
    content: list[ContentBlock] = []
    for one in blocks:
        is_content = isinstance(one, ContentBlock)
        content += [one] if is_content else _texts(tool.results.texts_of(one))
    if tool.results.schema is None:
        return CallToolResult(content=content)
    # clients refuse an answer without the structure that the tool has announced
    structured = tool.results.structured_of(
        blocks if isinstance(value, list | tuple) else blocks[0]
    )
    return CallToolResult(content=content, structured_content=structured)


def _block(value: Any) -> Any:
    """Return a helper of the SDK as the content that it makes, anything else as it is."""
    if isinstance(value, Image):
        return value.to_image_content()
    return value.to_audio_content() if isinstance(value, Audio) else value


def _texts(texts: Any) -> list[ContentBlock]:
    return [TextContent(text=text) for text in texts]
