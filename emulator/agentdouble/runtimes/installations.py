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

_HOME = re.compile(r"^home\s*=\s*(/[^\0\n]*?)\s*$", re.MULTILINE)
_CONFIG = "pyvenv.cfg"
_PARTS = ("bin", "lib", "lib64", "share", "ssl")  # Python's; ~ may be an installation as well
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
    shown = [path for base in bases for path in _parts(base)]
    places = [os.path.realpath(path) for path in shown]
    if program.may_show(python) or any(map(Path(os.path.realpath(python)).is_relative_to, places)):
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
    config = environment / _CONFIG
    if not config.is_file():  # a pipe would be waited for
        return []
    with config.open(errors="replace") as file:
        found = _HOME.search(file.read(_LONGEST_CONFIG))
    return [] if found is None else [Path(found[1]).parent]


def _parts(base: Path) -> list[Path]:
    """Return the parts of an installation that lie in it; none if Python would not take it for one.

    A link in a directory of the client's could lead anywhere.
    """
    if not any(base.glob("lib/py*/os.py")):
        return []
    real = os.path.realpath(base)
    found = [base / part for part in _PARTS]
    return [path for path in found if Path(os.path.realpath(path)).is_relative_to(real)]
