"""The meaning of a runtime's ArtifactUrl: a directory of this machine, and the program in it.

``file:///home/me/apps?application=my_agent:app``, or ``?command=python+server.py``; ``python``
and some more keys of a ``[[runtimes]]`` table may follow.

There are no containers, so an ArtifactUrl is a directory of this machine. A client that can sign
requests could otherwise read and run anything on it. So it may name only paths below
``runtime_sources`` (by default the working directory), after links are resolved; this also applies
to the interpreter. The settings and the program itself may name any path. In both cases the
processes are confined.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from agentdouble.control_plane.action_errors import invalid
from agentdouble.errors import ActionError, NotBuiltError
from agentdouble.runtimes.command_line import is_of_the_system, named_interpreter
from agentdouble.runtimes.definition import Definition, Program, Scaling

FILE = "file"
_IMAGE = "image"
_TIMES = ("idle_s", "start_timeout_s", "stop_timeout_s")
_USUAL = Scaling()
_KEYS: Mapping[str, Callable[[str], Any]] = {
    "application": str,
    "command": shlex.split,
    "python": str,
    **dict.fromkeys(_TIMES, float),
}
_FORM = "file:///DIRECTORY?application=MODULE:APP or file:///DIRECTORY?command=COMMAND"
_INSTEAD_OF_IMAGE = (
    "Run what is in it from its directory: ArtifactType file, and as ArtifactUrl "
    f"{_FORM}; &python=.venv/bin/python names the interpreter that has its libraries."
)


@dataclass(frozen=True)
class Sources:
    """The directories below which the ``field`` of a request may name files of this machine."""

    roots: tuple[Path, ...]
    field: str = "ArtifactUrl"

    def resolve(self, path: Path) -> Path:
        """Return a path without links; raise ActionError if it is not below the directories."""
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
            raise invalid(self.field, "its path cannot be followed") from None
        if not any(found.is_relative_to(root) for root in self.roots):
            below = ", ".join(map(str, self.roots))
            raise invalid(
                self.field,
                f"{path} is not below {below}; the setting runtime_sources names the directories "
                "whose applications may become runtimes",
            )
        return found


def read(kind: str, url: str, sources: Sources) -> dict[str, Any]:
    """Return the keys of a runtime's table that its artifact sets; raise ActionError."""
    check_type(kind)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _wrong(f"it is no URL: {error}") from None
    path = Path(unquote(parts.path))
    if parts.scheme != FILE or parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise _wrong(f"{url[:200]!r} is not {_FORM}")
    said = {key: _value(key, text) for key, text in _query(parts.query).items()}
    directory = sources.resolve(path)
    _check_application(said.get("application"), directory, sources)
    python = _interpreter(said.get("python"), directory, sources)
    if not python:
        check_command(said.get("command") or (), directory, sources)
    return {
        **dict.fromkeys(_KEYS),  # removes the keys of an earlier artifact
        **said,
        "directory": str(directory),
        "python": python,
        "sources": [str(root) for root in sources.roots],
    }


def check_there(table: Mapping[str, Any]) -> None:
    """Refuse an application whose file or module does not exist, without importing it.

    Modules of another interpreter or of a PYTHONPATH are not known before the program runs. A
    table without an environment keeps its previous one, so its modules are not known, either.
    """
    module = (table.get("application") or "").partition(":")[0]
    directory = Path(table["directory"])
    if not module or not directory.is_dir():  # another check refuses these
        return
    if module.endswith(".py"):
        if not os.path.isfile(directory / module):  # noqa: PTH113 (takes names of any length)
            raise _wrong(f"there is no file {directory / module}")
        return
    top = module.partition(".")[0]
    environment = table.get("environment")
    elsewhere = table.get("python") or environment is None or "PYTHONPATH" in environment
    if not (elsewhere or _lies_in(directory, top) or _is_library(top)):
        raise _wrong(
            f"there is no module {module!r} in {directory} or among the libraries of the "
            "double's Python; the key python names another interpreter"
        )


def check_type(kind: str) -> None:
    """Refuse an artifact that is not a directory; for an image, say what to use instead."""
    if kind == _IMAGE:
        raise NotBuiltError("A container image (ArtifactType image)", _INSTEAD_OF_IMAGE)
    if kind != FILE:
        raise invalid("ArtifactType", f"{kind[:100]!r} is none of {FILE}, {_IMAGE}")


def url_of(definition: Definition) -> str:
    """Return the ArtifactUrl for a runtime's program, in whatever way it was declared."""
    program, scaling = definition.program, definition.scaling
    said = {
        "application": program.application,
        "command": shlex.join(program.command) or None,
        "python": None if program.python is None else str(program.python),
        **{name: getattr(scaling, name) for name in _TIMES if _differs(scaling, name)},
    }
    query = urlencode({key: value for key, value in said.items() if value is not None})
    return f"file://{quote(str(program.directory))}?{query}"


def _differs(scaling: Scaling, name: str) -> bool:
    return bool(getattr(scaling, name) != getattr(_USUAL, name))


def _query(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=20
        )
    except ValueError:
        raise _wrong("its query is not KEY=VALUE, with & between") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _wrong("its query has a key twice")
    return found


def _value(key: str, text: str) -> Any:
    if key not in _KEYS:
        raise _wrong(f"its query has {key[:100]!r}, which is none of {', '.join(_KEYS)}")
    try:
        return _KEYS[key](text)
    except ValueError:
        raise _wrong(f"its {key} cannot be read: {text[:100]!r}") from None


def _check_application(application: str | None, directory: Path, sources: Sources) -> None:
    """Refuse a file outside the sources; a module is found by name, and a path is none."""
    module = (application or "").partition(":")[0]
    if module.endswith(".py"):
        sources.resolve(directory / module)
    elif "/" in module:
        raise _wrong(f"{module[:100]!r} is neither a module nor a file that ends in .py")


def check_command(command: Sequence[str], directory: Path, sources: Sources) -> None:
    """Refuse an interpreter in the command that lies elsewhere; raise ActionError.

    The process would see all files of that interpreter's environment.
    """
    python = named_interpreter(Program(directory, command=tuple(command)))
    if python is not None and not is_of_the_system(python):
        sources.resolve(python.parent)


def _lies_in(directory: Path, top: str) -> bool:
    """Return whether a directory has a module, without caches, because it may be new."""
    places = (directory / f"{top}{suffix}" for suffix in ("", *all_suffixes()))
    return any(map(os.path.exists, places))  # Path.exists raises for a name that is too long


def _is_library(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except ValueError:  # a loaded module without a spec
        return True


def _interpreter(named: str | None, directory: Path, sources: Sources) -> str | None:
    """Return the interpreter's path, but keep its last link: it marks a virtual environment."""
    if named is None:
        return None
    python = directory / named
    if python == Path(sys.executable):
        return str(python)
    return str(sources.resolve(python.parent) / python.name)


def _wrong(why: str) -> ActionError:
    return invalid("ArtifactUrl", why)
