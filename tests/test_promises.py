"""What a released version promised is still there; CHANGELOG.md and the next version may add."""

from __future__ import annotations

import pytest

from agentdouble import __version__
from tests.promises import FILE, candidates
from tests.readme.pages import read

pytestmark = pytest.mark.once


def test_promises_are_kept() -> None:
    """A removal needs a new major version: see emulator/docs/stability.md."""
    released = FILE.read_text("utf-8").splitlines()

    assert [] == sorted(set(released) - set(candidates()))
    assert len(released) > 700


def test_the_changelog_begins_with_this_version() -> None:
    """Above it there may be what the next version changes."""
    headings = [line for line in read("CHANGELOG.md").splitlines() if line.startswith("## ")]
    if headings[0] == "## Unreleased":
        del headings[0]

    assert headings[0].startswith(f"## {__version__}, ")
