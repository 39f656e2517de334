"""What a command names: its interpreter, and paths that a confined instance does not see.

A command that begins with the path of a Python interpreter runs as if that were the runtime's
``python``. A name that is found on PATH is not followed, because the variables of a runtime can
change PATH: a client of the control plane would choose what an instance sees.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentdouble.runtimes.definition import Program

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*t?")
_SYSTEM = ("/bin", "/usr", "/opt")
_PATH = re.compile(r"(?<![^\s=:'\"!])/(?!/)[^\s'\":;,|&<>$*?()]+")
_SCRIPT = re.compile(rb"#![ \t]*(/[^ \t\r\n]+)")
_LONGEST_COMMAND = 10_000


def interpreter_of(program: Program) -> Path | None:
    """Return the interpreter that a program names, as ``python`` or by its path in ``command``.

    Of a command, only an interpreter that exists.
    """
    if program.python is not None:
        return program.python
    named = named_interpreter(program)
    return named if named is not None and os.access(named, os.X_OK) else None


def named_interpreter(program: Program) -> Path | None:
    """Return the path at which a command names an interpreter that is not the double's own.

    Links are not resolved, because a virtual environment's interpreter is a link.
    """
    first = program.command[0] if program.command else ""
    if "/" not in first or _PYTHON.fullmatch(os.path.basename(first)) is None:  # noqa: PTH119
        return None
    found = Path(os.path.normpath(program.directory / first))
    return None if found.parent == Path(sys.executable).parent else found


def is_of_the_system(interpreter: Path) -> bool:
    """Return whether every instance sees an interpreter, wherever its links lead."""
    real = Path(os.path.realpath(interpreter))
    return all(any(one.is_relative_to(place) for place in _SYSTEM) for one in (interpreter, real))


def hidden_from(
    command: Sequence[str], program: Program, path: str, readable: Iterable[str]
) -> list[str]:
    """Return the paths that a command names and that are not ``readable``.

    Of an operator's command, what the file of its first word needs counts as well, and only what
    exists. What a client of the control plane names is told whether it exists or not, because that
    client may not know; ``path``, the runtime's own PATH, may always be from one.
    """
    shown = tuple(readable)
    named = [one for word in command for one in _PATH.findall(word[:_LONGEST_COMMAND])]
    by_name = "/" not in command[0]
    if program.sources is None:
        found = shutil.which(command[0]) if by_name else None
        named += _needed_by(program.directory / (found or command[0]))
        named = [one for one in named if os.path.exists(one)]  # noqa: PTH110 (takes any text)
    if by_name:
        named += (one for one in path.split(os.pathsep) if one.startswith("/"))
    return [one for one in dict.fromkeys(named) if not _is_shown(one, shown)]


def _needed_by(program: Path) -> list[str]:
    """Return the environment of an interpreter, and what links and the head of a script name."""
    found = [os.path.realpath(program)]
    if os.path.isfile(program.parent.parent / "pyvenv.cfg"):  # noqa: PTH113 (takes any text)
        found.append(str(program.parent.parent))
    try:
        with program.open("rb") as file:
            script = _SCRIPT.match(file.read(300))
    except (OSError, ValueError):
        return []
    return found if script is None else [*found, os.fsdecode(script[1])]


def _is_shown(path: str, shown: Sequence[str]) -> bool:
    normal = Path(os.path.normpath(path))
    return any(normal.is_relative_to(place) for place in shown)
