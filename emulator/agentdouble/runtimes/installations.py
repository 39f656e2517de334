"""What an instance sees of an interpreter that a client of the control plane names.

The files of the interpreter tell; it is not executed, because that would be outside of a
confinement. Paths of ``.pth`` files are not followed, because they could show anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agentdouble.runtimes.definition import Program

_HOME = re.compile(r"^home\s*=\s*(/.*?)\s*$", re.MULTILINE)
_CONFIG = "pyvenv.cfg"
_MOST_LINKS = 40  # as in Linux
_LONGEST_CONFIG = 10_000  # characters


def visible_of(python: Path, program: Program) -> tuple[str, ...]:
    """Return the paths that the instances of a program need of their interpreter.

    These are its environment, if the program may name it, and the installation that the environment
    was made from, wherever it is.
    """
    environment = python.parent.parent
    steps = list(_steps(python))
    bases = [step.parent.parent for step in steps] + _homes(environment)
    installed = [base for base in bases if _is_installation(base)]
    places = tuple(Path(os.path.realpath(base)) for base in installed)
    real = Path(os.path.realpath(python))
    shown = [*installed]
    if program.may_show(python) or any(map(real.is_relative_to, places)):
        shown += steps
    if (environment / _CONFIG).is_file() and program.may_show(environment):
        shown.append(environment)
    return tuple(sorted({str(path) for path in shown}))


def _steps(python: Path) -> Iterator[Path]:
    """Yield the path of an interpreter, and the paths to which it leads as a link."""
    for _ in range(_MOST_LINKS):
        yield python
        if not python.is_symlink():
            return
        python = Path(os.path.normpath(python.parent / os.readlink(python)))  # noqa: PTH115


def _homes(environment: Path) -> list[Path]:
    """Return the installation that a virtual environment names."""
    try:
        with (environment / _CONFIG).open(errors="replace") as file:
            found = _HOME.search(file.read(_LONGEST_CONFIG))
    except OSError:
        return []
    return [] if found is None else [Path(found[1]).parent]


def _is_installation(place: Path) -> bool:
    """Return whether Python itself would take a directory for its installation."""
    return any(place.glob("lib/py*/os.py"))
