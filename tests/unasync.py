"""The clients that block, made from those for async code: ``python -m tests.unasync``.

Whoever changes a file of ``doublecheck/client/_async`` runs this, and commits what it writes to
``_sync``. Words are replaced, in docstrings too. A line that ends in ``# async only`` is left
out, and ``# sync only: @property`` becomes ``@property``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import doublecheck

CLIENT = Path(doublecheck.__file__).parent / "client"
WRITTEN, MADE = CLIENT / "_async", CLIENT / "_sync"
HEADER = "# Made by `python -m tests.unasync` from {}: change that file, not this one.\n"

REPLACED = [
    (r"^.*# async only\n", ""),
    (r"# sync only: ", ""),
    (r"\basync (?=def|for|with)", ""),
    (r"``async with``", "``with``"),
    (r"\bawait ", ""),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"(?<![a-z])(Abstract)?Async(?=[A-Z])", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\ba(close|closing|iter_sse|read)\b", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\b_async\b", "_sync"),
    (r"(?<=\w)_async\b", ""),
]


def blocking(source: str) -> str:
    """Return the source of what blocks, made from the source of what is awaited."""
    for pattern, replacement in REPLACED:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return source


def made() -> Mapping[Path, str]:
    """Return what is made: the files of ``_sync`` and their text."""
    found = {}
    for path in sorted(WRITTEN.glob("*.py")):
        if path.name != "__init__.py":
            header = HEADER.format(f"{WRITTEN.name}/{path.name}")
            found[MADE / path.name] = header + blocking(path.read_text())
    return found


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
