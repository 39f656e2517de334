"""The backend of a service that is a command: an MCP server on standard input and output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from agentdouble.errors import BackendError
from agentdouble.mcp_hosting import Hosted
from agentdouble.mcp_services.stdio import Program, Programs, StdioHosted
from agentdouble.state import Record

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_S = 86_400.0


@dataclass(frozen=True)
class CommandBackend:
    """A command that speaks MCP over its standard input and output.

    Its processes run confined in ``directory``, as those of a runtime: they read it, and write to a
    home directory of the service only. They get ``environment`` in addition to the system's. A
    request without an answer for ``timeout_s`` fails. With ``sources``, nothing outside these
    directories is shown to them, whatever the command names. Raises BackendError.
    """

    kind: ClassVar[str] = "command"

    command: tuple[str, ...]
    directory: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 120.0
    sources: tuple[Path, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "directory", Path(self.directory).absolute())
        words = [*self.command, *self.environment, *self.environment.values()]
        if not self.command or not self.command[0]:
            raise _unusable("it is empty")
        if not all(isinstance(word, str) and _can_be_given(word) for word in words):
            raise _unusable("its words and variables are text without NUL")
        for name in self.environment:
            if not _VARIABLE.fullmatch(name):
                raise _unusable(f"{name[:100]!r} is no name of an environment variable")
        if not 0 < self.timeout_s <= _LONGEST_S:
            raise _unusable(f"its timeout_s is a number of seconds up to {_LONGEST_S:g}")

    def hosted(self, name: str, programs: Programs) -> Hosted:
        """Return an application that talks to processes of the command."""
        program = Program(self.command, self.directory, self.environment, self.sources)
        return StdioHosted(name, program, self.timeout_s, programs)

    def to_record(self) -> Record:
        """Return the backend as JSON-ready data."""
        return {
            "command": [*self.command],
            "directory": str(self.directory),
            "environment": dict(self.environment),
            "timeout_s": self.timeout_s,
            "sources": None if self.sources is None else [str(one) for one in self.sources],
        }

    @classmethod
    def of(
        cls,
        *,
        command: Sequence[str],
        directory: str,
        sources: Sequence[str] | None = None,
        **fields: Any,
    ) -> CommandBackend:
        """Return the backend of a record."""
        roots = None if sources is None else tuple(map(Path, sources))
        return cls(tuple(command), Path(directory), sources=roots, **fields)


def _can_be_given(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in word


def _unusable(why: str) -> BackendError:
    return BackendError(f"The command of an MCP service cannot be run: {why}.", service="")
