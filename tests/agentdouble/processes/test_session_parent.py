"""The directory that holds the files of sessions."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.errors import AgentDoubleError
from agentdouble.processes import workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the paths are those of Linux")


@pytest.mark.parametrize("name", ["l" * 170, "/usr"], ids=["long", "of the system"])
def test_an_unsuitable_temporary_directory_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Sessions use /tmp instead of a path that every session sees."""
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(directory))

    assert Path("/tmp") == workspace.find()


def test_a_double_needs_a_directory_for_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says why none is usable and what to set."""
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(AgentDoubleError, match=r"/tmp is not writable.*Set TMPDIR to a short"):
        Emulator()
