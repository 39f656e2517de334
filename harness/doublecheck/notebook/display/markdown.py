"""Markdown that code returned: unchanged if it only formats, else as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from doublecheck.notebook.display.html_cleaner import cleaned

if TYPE_CHECKING:
    from markdown_it.token import Token

_LIMIT = 100_000
# HTML, characters by name or number, and schemes that run code or contain data
_MORE_THAN_TEXT = re.compile(r"<[a-z/!?]|&#|&\w+;|(?:script|data|file|blob)\s*:", re.I)


def passes(text: str) -> bool:
    """Whether a notebook may render a text: it has no HTML, no unusual links, nothing to load."""
    return (
        len(text) <= _LIMIT
        and find_spec("markdown_it") is not None
        and not _MORE_THAN_TEXT.search(text)
        and not any(token.type == "image" for token in _all(_tokens(text)))
    )


def rendered(text: str) -> str | None:
    """Return Markdown as HTML that is harmless in any page, or None if only text is safe."""
    if len(text) > _LIMIT or find_spec("markdown_it") is None:
        return None
    from markdown_it import MarkdownIt

    return cleaned(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))


def _tokens(text: str) -> list[Token]:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").parse(text)


def _all(tokens: Iterable[Token]) -> Iterable[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or ())
