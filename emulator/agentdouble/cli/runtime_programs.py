"""The program of a runtime, as typed: a directory of this machine, and what runs in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from agentdouble.errors import AgentDoubleError


@dataclass(frozen=True)
class Program:
    """A program, as typed; None for options that were not given."""

    application: str | None = None
    command: str | None = None
    directory: str | None = None
    python: str | None = None
    idle_s: float | None = None

    @property
    def said(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in vars(self).values())


def artifact_url(program: Program, before: Mapping[str, str]) -> str:
    """Return the ArtifactUrl of a program, with absolute paths; take the rest from ``before``."""
    if program.application is not None and program.command is not None:
        raise AgentDoubleError("Say MODULE:APP or --command, not both.")
    directory, application = _placed(program)
    said = {
        "application": application,
        "command": program.command,
        "python": None if program.python is None else str(Path(program.python).absolute()),
        "idle_s": None if program.idle_s is None else str(program.idle_s),
    }
    given = {key: value for key, value in said.items() if value is not None}
    other = {"application": "command", "command": "application"}
    dropped = {"directory", *(other[key] for key in given if key in other)}
    query = {**{k: v for k, v in before.items() if k not in dropped}, **given}
    if not query.keys() & other.keys():
        raise AgentDoubleError(
            "Say what it runs: MODULE:APP, FILE.py:APP or --command. See --help."
        )
    place = directory or before.get("directory") or str(Path.cwd())
    return f"file://{quote(place)}?{urlencode(query)}"


def program_of(url: str) -> dict[str, str]:
    """Return the parts of an ArtifactUrl: the directory, and the keys of its query."""
    parts = urlsplit(url)
    return {"directory": unquote(parts.path), **dict(parse_qsl(parts.query))}


def _placed(program: Program) -> tuple[str | None, str | None]:
    """Return the directory, if there is one, and the application relative to it."""
    directory = None if program.directory is None else Path(program.directory).absolute()
    module, colon, attribute = (program.application or "").partition(":")
    file = Path(module)
    if module.endswith(".py") and directory is None and program.application is not None:
        return str(file.absolute().parent), f"{file.name}{colon}{attribute}"
    return (None if directory is None else str(directory)), program.application
