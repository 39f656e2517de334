"""A started process of a command that speaks MCP."""

from __future__ import annotations

import asyncio
from typing import Protocol

LONGEST_LINE = 16 * 1024 * 1024  # bytes; a message is a line


class Started(Protocol):
    """A started process; ``lines`` is its output, and ``input`` its input."""

    @property
    def lines(self) -> asyncio.StreamReader: ...

    @property
    def input(self) -> asyncio.StreamWriter: ...

    def log(self, line: bytes) -> None:
        """Add a line of its output that is not a message to the service's log."""

    def note(self, text: str) -> None:
        """Add a message of the double to the service's log."""

    async def end(self, patience_s: float) -> str:
        """Ask it to end, then kill it; return how it ended when nothing of it is left."""

    async def wait(self) -> None:
        """Return when it has ended."""
