"""Repeat the calls of a saved test, to learn what changes from one time to the next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doublecheck import atomic_files
from doublecheck.saved_tests import trial
from doublecheck.target.facts import CONFIG, FACTS, TARGET

TIMES = 3
_WITHIN_S = 120.0
_NOT_PASSED_ON = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER")


@dataclass(frozen=True)
class Repeats:
    """What the numbered expressions of a test came to, and why not all of them did.

    An expression that raised has no value.
    """

    values: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    trouble: str | None = None

    def of(self, number: int) -> Sequence[Any]:
        """Return the values of an expression, one for each repetition, or none."""
        found = self.values.get(number, ())
        return found if len(found) == TIMES else ()


def repeated(text: str, path: Path) -> Repeats:
    """Run a trial ``TIMES`` times at the place of its test, and return what it noted.

    Raises OSError if the file cannot be written.
    """
    try:
        atomic_files.write(path, text)
        with tempfile.TemporaryDirectory(prefix="doublecheck-") as folder:
            notes = Path(folder) / "notes"
            notes.touch()
            trouble = _run(path, notes)
            return _read(notes.read_text("utf-8").splitlines(), trouble)
    finally:
        path.unlink(missing_ok=True)


def _run(path: Path, notes: Path) -> str | None:
    """Run pytest, and return why it did not come to an end."""
    plugin = ["-p", trial.__name__, "-p", "no:cacheprovider", "-o", "addopts="]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, path.name]
    own = [fact.variable for fact in (*FACTS, TARGET, CONFIG)]
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in own and name not in _NOT_PASSED_ON
    }
    environ |= {trial.NOTES: str(notes), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(  # noqa: S603 (our own interpreter and the plugin above)
            command,
            cwd=path.parent,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {_WITHIN_S:.0f} seconds"
    if ended.returncode == 0:
        return None
    said = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    return said[-1] if said else f"pytest ended with {ended.returncode}"


def _read(lines: Iterable[str], trouble: str | None) -> Repeats:
    values: dict[int, list[Any]] = {}
    for line in map(json.loads, lines):
        if "failed" in line:
            trouble = line["failed"]
        elif "value" in line:
            values.setdefault(line["number"], []).append(line["value"])
    return Repeats(values, trouble)
