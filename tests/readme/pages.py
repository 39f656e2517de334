"""The documentation pages and their fenced blocks.

A test that runs a block takes it with ``block`` when its module is imported, so that
``test_pages`` can find the blocks that no test runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT, DOUBLE, HARNESS = "README.md", "emulator", "harness"
SIGNING = "emulator/docs/other-languages.md"
FOLDERS = (DOUBLE, HARNESS)


def _pages(place: str) -> list[str]:
    """Return the pages of a folder, or the page itself."""
    if place not in FOLDERS:
        return [place]
    files = [ROOT / place / "README.md", *sorted((ROOT / place / "docs").glob("*.md"))]
    return [str(file.relative_to(ROOT)) for file in files]


PAGES = tuple(page for place in (FRONT, *FOLDERS) for page in _pages(place))
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_used: set[Block] = set()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language})"


def read(place: str) -> str:
    """Return the text of a page, or of all pages of a folder."""
    return "\n".join((ROOT / page).read_text("utf-8") for page in _pages(place))


def blocks(place: str, language: str | None = None) -> list[Block]:
    """Return the blocks of a page or folder in order, optionally of one language only."""
    all_blocks = [
        Block(page, match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for page, text in ((page, read(page)) for page in _pages(place))
        for match in _FENCED.finditer(text)
    ]
    return [candidate for candidate in all_blocks if language in (None, candidate.language)]


def block(place: str, language: str, start: str) -> str:
    """Take the only block of a page or folder that starts with this text, and return its text."""
    (first,) = (item for item in blocks(place, language) if item.text.startswith(start))
    _used.add(first)
    return first.text


def untaken() -> list[Block]:
    """Return the blocks that no test has taken."""
    return [block for page in PAGES for block in blocks(page) if block not in _used]
