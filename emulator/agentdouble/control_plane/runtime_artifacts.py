"""The meaning of a runtime's ArtifactUrl: a directory of this machine, and the program in it.

``file:///home/me/apps?application=my_agent:app``, or ``?command=python+server.py``; ``python`` and
``start_timeout_s`` of a ``[[runtimes]]`` table may follow.

There are no containers, so an ArtifactUrl is a directory of this machine. A client that can sign
requests could otherwise read and run anything on it. So it may name only paths below
``runtime_sources`` (by default the working directory), after links are resolved; this also applies
to the interpreter. The settings and the program itself may name any path. In both cases the
processes are confined.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from agentdouble.control_plane.public_errors import invalid
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.runtimes.definition import Definition

FILE = "file"
_KEYS = ("application", "command", "python", "start_timeout_s")
_FORM = "file:///DIRECTORY?application=MODULE:APP or file:///DIRECTORY?command=COMMAND"
_INSTEAD_OF_IMAGE = (
    "Run its content from a directory: ArtifactType file, and as ArtifactUrl "
    f"{_FORM}; &python=.venv/bin/python names the interpreter that has its libraries."
)


@dataclass(frozen=True)
class ArtifactSources:
    """The directories below which the ``field`` of a request may name files of this machine."""

    roots: tuple[Path, ...]
    field: str = "ArtifactUrl"

    def resolve(self, path: Path) -> Path:
        """Return a path without links; raise ActionError if it is not below the directories."""
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
            raise invalid(self.field, "its path cannot be resolved") from None
        if not any(resolved.is_relative_to(root) for root in self.roots):
            below = ", ".join(map(str, self.roots))
            raise invalid(
                self.field,
                f"{path} is not below {below}; the setting runtime_sources names the directories "
                "whose applications may become runtimes",
            )
        return resolved


def read(kind: str, url: str, sources: ArtifactSources) -> dict[str, Any]:
    """Return the keys of a runtime's table that its artifact sets; raise ActionError."""
    check_type(kind)
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=20
        )
    except ValueError as error:
        raise _wrong(f"it cannot be read: {error}") from None
    path, query = Path(unquote(parts.path)), dict(pairs)
    if parts.scheme != FILE or parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise _wrong(f"{url[:200]!r} is not {_FORM}")
    if len(query) != len(pairs) or not query.keys() <= {*_KEYS}:
        raise _wrong(f"its query has keys other than {', '.join(_KEYS)}, or one twice")
    directory = sources.resolve(path)
    module = query.get("application", "").partition(":")[0]
    if module.endswith(".py"):
        if not os.path.isfile(sources.resolve(directory / module)):  # noqa: PTH113 (of any length)
            raise _wrong(f"there is no file {directory / module}")
    elif "/" in module:
        raise _wrong(f"{module[:100]!r} is neither a module nor a file that ends in .py")
    return {
        **dict.fromkeys(_KEYS),  # removes the keys of an earlier artifact
        **query,
        "directory": str(directory),
        "python": _interpreter(query.get("python"), directory, sources),
        "sources": [str(root) for root in sources.roots],
    }


def check_type(kind: str) -> None:
    """Refuse an artifact that is not a directory; for an image, say what to use instead."""
    if kind == "image":
        raise NotBuiltError("A container image (ArtifactType image)", _INSTEAD_OF_IMAGE)
    if kind != FILE:
        raise invalid("ArtifactType", f"{kind[:100]!r} is not one of {FILE}, image")


def url_of(definition: Definition) -> str:
    """Return the ArtifactUrl for a runtime's program, in whatever way it was declared."""
    keys = {name: getattr(definition, name) for name in _KEYS}
    keys["command"] = shlex.join(definition.command)
    usual = Definition.model_fields["start_timeout_s"].default
    query = urlencode({name: value for name, value in keys.items() if value and value != usual})
    return f"file://{quote(str(definition.directory))}?{query}"


def _interpreter(named: str | None, directory: Path, sources: ArtifactSources) -> str | None:
    """Return the interpreter's path, but keep its last link: it marks a virtual environment."""
    if named is None:
        return None
    python = directory / named
    if python == Path(sys.executable):
        return str(python)
    return str(sources.resolve(python.parent) / python.name)


def _wrong(reason: str) -> ActionError:
    return invalid("ArtifactUrl", reason)
