"""The shipped coder: an agent without a model that really runs the code it is sent.

It runs each fenced code block of a message (or the whole message, if it has none) in the
session's sandbox through run_code, and answers in Markdown: text as it was printed, errors
with their traceback, images as data URIs.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.errors import PlatformError
from agentdouble.run_code import run_code

_BLOCK = re.compile(r"^```[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^```", re.S | re.M)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class CodeBlock:
    """A piece of code in a message; ``language`` is as the message names it."""

    language: str
    code: str


def code_blocks(message: str) -> tuple[CodeBlock, ...]:
    """Return the fenced code blocks of a message, or the whole message as one."""
    found = tuple(
        CodeBlock(match["language"] or "python3", match["code"])
        for match in _BLOCK.finditer(message)
    )
    return found or (CodeBlock("python3", message),)


async def answer(message: str) -> str:
    """Run the code in a message, block after block, and return what it came to as Markdown."""
    if not message.strip():
        return "Send me a code block and I run it."
    return "\n\n".join([await _run(block) for block in code_blocks(message)])


async def _run(block: CodeBlock) -> str:
    try:
        result = json.loads(await asyncio.to_thread(run_code, block.code, block.language))
    except PlatformError as error:
        return f"Error: {error.message}"
    shown = "\n".join(_show(result["data"]["outputs"]))
    if shown:
        return shown
    return "Done, without output." if result["success"] else f"Error: {result['message']}"


def _show(outputs: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for output in outputs:
        if output["output_type"] == "stream":
            yield output["text"].rstrip("\n")
        elif output["output_type"] == "error":
            traceback = _ANSI.sub("", "\n".join(output["traceback"]))
            yield f"Error: {output['ename']}: {output['evalue']}\n\n```text\n{traceback}\n```"
        else:
            yield _show_data(output["data"])


def _show_data(data: Mapping[str, Any]) -> str:
    for mime_type in ("image/png", "image/jpeg"):
        if mime_type in data:
            content = "".join(data[mime_type].split())
            return f"![{data.get('text/plain', 'image')}](data:{mime_type};base64,{content})"
    for mime_type in ("text/markdown", "text/plain"):
        if mime_type in data:
            return str(data[mime_type])
    return f"({', '.join(data)})"
