"""What a service needs of the processes of its command; runtimes start and confine them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

LONGEST_LINE = 16 * 1024 * 1024  # bytes; a message is a line


@dataclass(frozen=True)
class Program:
    """A command, the directory that it runs in, and variables for its environment.

    With ``sources``, nothing that the command or a variable names makes other paths visible.
    """

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    sources: tuple[Path, ...] | None = None


class Started(Protocol):
    """A started process; ``lines`` are what it writes, and it reads what ``input`` is given."""

    @property
    def lines(self) -> asyncio.StreamReader: ...

    @property
    def input(self) -> asyncio.StreamWriter: ...

    def log(self, line: bytes) -> None:
        """Add a line of its output that is no message to the service's log."""

    def note(self, text: str) -> None:
        """Add a message of the double to the service's log."""

    async def end(self, patience_s: float) -> str:
        """Ask it to end, then kill it; return how it ended when nothing of it is left."""

    async def wait(self) -> None:
        """Return when it has ended."""


class Programs(Protocol):
    """Starts the processes of the services; those of a service share a home directory."""

    async def start(self, service: str, program: Program) -> Started:
        """Start a process of a service; raise ServiceUnansweredError."""

    async def forget(self, service: str) -> None:
        """Remove the files and the log of a service whose processes have ended."""
