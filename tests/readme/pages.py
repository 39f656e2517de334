"""The documentation pages and their fenced blocks.

A test that runs a block takes it with ``block`` when its module is imported, so that
``test_every_block`` can find the blocks that no test runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT, DOUBLE, HARNESS = "README.md", "emulator/README.md", "harness/README.md"
SIGNING = "emulator/signing.md"
PAGES = (FRONT, DOUBLE, HARNESS, SIGNING)
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


def read(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text("utf-8")


def blocks(page: str, language: str | None = None) -> list[Block]:
    """Return the blocks of a page in order, optionally of one language only."""
    text = read(page)
    all_blocks = [
        Block(page, match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in _FENCED.finditer(text)
    ]
    return [candidate for candidate in all_blocks if language in (None, candidate.language)]


def block(page: str, language: str, start: str) -> str:
    """Take the only block of a page that starts with this text, and return its text."""
    (first,) = (item for item in blocks(page, language) if item.text.startswith(start))
    _used.add(first)
    return first.text


def untaken() -> list[Block]:
    """Return the blocks that no test has taken."""
    return [block for page in PAGES for block in blocks(page) if block not in _used]
