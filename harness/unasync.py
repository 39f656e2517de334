"""Generate the blocking clients ``doublecheck/client/_sync`` from the async ones in ``_async``.

Every build runs this as a hook, even an editable installation, and so do the tests at their start.
Words are replaced, in docstrings too. A line that ends in ``# async only`` is left out, and
``# sync only: @property`` becomes ``@property``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

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
    (r"\ba(close|closing|read_events|read)\b", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\b_async\b", "_sync"),
    (r"(?<=\w)_async\b", ""),
]


class GenerateBlockingClients(BuildHookInterface[Any]):
    """The build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the blocking clients before files are collected."""
        generate()


def generate() -> None:
    """Write the blocking clients that are not up to date; remove those without a source."""
    client = Path(__file__).parent / "doublecheck" / "client"
    (client / "_sync").mkdir(exist_ok=True)
    for written in (client / "_sync").glob("*.py"):
        if not (client / "_async" / written.name).exists():
            written.unlink()
    for path in (client / "_async").glob("*.py"):
        source = path.read_text("utf-8")
        for pattern, replacement in REPLACED:
            source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
        target = client / "_sync" / path.name
        if not target.exists() or target.read_text("utf-8") != source:
            target.write_text(source, "utf-8")
