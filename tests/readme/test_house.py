"""The tables of CONTRIBUTING.md match the modules of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readme.pages import ROOT, read

pytestmark = [pytest.mark.once, pytest.mark.smoke]

PACKAGES = {
    "emulator/agentdouble": "The double, `emulator/agentdouble`",
    "harness/doublecheck": "The harness, `harness/doublecheck`",
}
NO_ROOMS = {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("package", PACKAGES)
def test_tables_name_every_module(package: str) -> None:
    """The tables of CONTRIBUTING.md name every module, and no other."""
    actual = set(filter(None, map(_spelled, (ROOT / package).iterdir()))) - NO_ROOMS
    table = read("CONTRIBUTING.md").split(PACKAGES[package])[1].split("\n\n")[1]
    rooms = {name for row in table.splitlines() for name in re.findall(r"`(\S+)`", _rooms(row))}

    assert actual == rooms, f"name each room of {package} in CONTRIBUTING.md, section Rooms"


def _spelled(path: Path) -> str | None:
    """Return a module's name in the table, or None for data and leftover caches."""
    if path.is_dir():
        return f"{path.name}/" if any(path.glob("*.py")) else None
    return path.name if path.suffix == ".py" else None


def _rooms(row: str) -> str:
    return row.split("|")[1]
