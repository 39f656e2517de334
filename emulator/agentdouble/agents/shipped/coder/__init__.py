"""The shipped coder: an agent without a model that runs the code of messages.

It runs each fenced code block of a message (or the whole message, if it has none) in the
session's sandbox through run_code. It answers in Markdown: text as it was printed, errors with
their traceback. Images become artifacts, or data URIs where there are none.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentdouble.agents import Event, Message, Part, Session
from agentdouble.core.code_tool import run_code
from agentdouble.core.threads import apart
from agentdouble.errors import PlatformError
from agentdouble.journal.failures import beneath

_BLOCK = re.compile(r"^```[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^```", re.S | re.M)
NOTHING_TO_RUN = "Send me a code block and I run it."
_IMAGES = {"image/png": "png", "image/jpeg": "jpeg"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


async def root_agent(message: Message, session: Session) -> AsyncIterator[Event]:
    """Answer with the outcome of each code block; save its images and send them along."""
    if not message.text.strip():
        yield Event((Part.of_text(NOTHING_TO_RUN),))
        return
    numbers = itertools.count(1)
    for block in code_blocks(message.text):
        outcome = await run(block)
        images = outcome.images()
        for extension, image in images:
            await session.save_artifact(f"plot-{next(numbers)}.{extension}", image)
        yield Event((Part.of_text(outcome.text()), *(image for _, image in images)))


@dataclass(frozen=True)
class CodeBlock:
    """A piece of code in a message; ``language`` is as the message names it."""

    language: str
    code: str


def code_blocks(message: str) -> tuple[CodeBlock, ...]:
    """Return the fenced code blocks of a message, or the whole message as one."""
    blocks = tuple(
        CodeBlock(match["language"] or "python3", match["code"])
        for match in _BLOCK.finditer(message)
    )
    return blocks or (CodeBlock("python3", message),)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a code block; ``fallback`` is its text where there are no outputs."""

    outputs: tuple[Mapping[str, Any], ...]
    fallback: str

    def markdown(self) -> str:
        """Return the outputs as Markdown, images as data URIs."""
        return "\n".join(_show(self.outputs, _as_data_uri)) or self.fallback

    def text(self) -> str:
        """Return the outputs as Markdown, images as their text."""
        return "\n".join(_show(self.outputs, _as_text)) or self.fallback

    def images(self) -> tuple[tuple[str, Part], ...]:
        """Return its images, each with its file name extension."""
        images = (_image(output["data"]) for output in self.outputs if output["data"])
        return tuple(
            (_IMAGES[mime_type], Part.of_data(base64.b64decode(content), mime_type))
            for mime_type, content in (image for image in images if image is not None)
        )


async def answer(message: str) -> str:
    """Run the code in a message, block after block, and return the outcomes as Markdown."""
    if not message.strip():
        return NOTHING_TO_RUN
    return "\n\n".join([(await run(block)).markdown() for block in code_blocks(message)])


async def run(block: CodeBlock) -> Outcome:
    """Run a code block in the session's sandbox."""
    try:
        # run_code blocks while the code runs, so it must not use a shared thread.
        result = json.loads(
            await asyncio.wrap_future(apart(partial(run_code, block.code, block.language)))
        )
    except PlatformError as error:
        if beneath(error):  # the double failed, not the code
            raise
        return Outcome((), f"Error: {error.message}")
    done = "Done, without output." if result["success"] else f"Error: {result['message']}"
    return Outcome(tuple(result["data"]["outputs"]), done)


def _show(
    outputs: Iterable[Mapping[str, Any]], show_data: Callable[[Mapping[str, Any]], str]
) -> Iterable[str]:
    for output in outputs:
        if output["output_type"] == "stream":
            yield output["text"].rstrip("\n")
        elif output["output_type"] == "error":
            traceback = _ANSI.sub("", "\n".join(output["traceback"]))
            yield f"Error: {output['ename']}: {output['evalue']}\n\n```text\n{traceback}\n```"
        else:
            yield show_data(output["data"])


def _as_data_uri(data: Mapping[str, Any]) -> str:
    image = _image(data)
    if image is None:
        return _as_text(data)
    mime_type, content = image
    return f"![{data.get('text/plain', 'image')}](data:{mime_type};base64,{content})"


def _as_text(data: Mapping[str, Any]) -> str:
    for mime_type in ("text/markdown", "text/plain"):
        if mime_type in data:
            return str(data[mime_type])
    return f"({', '.join(data)})"


def _image(data: Mapping[str, Any]) -> tuple[str, str] | None:
    for mime_type in _IMAGES:
        if mime_type in data:
            return mime_type, "".join(data[mime_type].split())
    return None
