"""Where the files of sessions are."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.errors import AgentDoubleError
from agentdouble.processes import workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ones")


@pytest.mark.parametrize("name", ["l" * 170, "/usr"], ids=["long", "of the system"])
def test_a_temporary_directory_that_does_not_suit_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Sessions are in /tmp then, and not where every session sees them."""
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(directory))

    assert Path("/tmp") == workspace.find()


def test_without_any_directory_no_double_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says why, and what to set."""
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(AgentDoubleError, match=r"/tmp is not writable.*Set TMPDIR to a short"):
        Emulator()
