"""Markdown that code returned: as it is where it only formats, else as the HTML it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from doublecheck.notebook.display.html_cleaner import cleaned

if TYPE_CHECKING:
    from markdown_it.token import Token

_LIMIT = 100_000
# HTML, characters by name or number, and schemes that run or carry something
_MORE_THAN_TEXT = re.compile(r"<[a-z/!?]|&#|&\w+;|(?:script|data|file|blob)\s*:", re.I)


def passes(text: str) -> bool:
    """Whether a notebook may render it itself: no HTML, no unusual links, nothing to fetch."""
    return (
        len(text) <= _LIMIT
        and find_spec("markdown_it") is not None
        and not _MORE_THAN_TEXT.search(text)
        and not any(token.type == "image" for token in _all(_tokens(text)))
    )


def rendered(text: str) -> str | None:
    """Return it as HTML that is harmless in any page, or None if only text is safe."""
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
