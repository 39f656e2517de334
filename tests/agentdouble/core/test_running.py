"""Files by which doubles of one user find each other, hidden from other users."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentdouble.core import running
from agentdouble.core.environment import Connection
from agentdouble.errors import AgentDoubleError


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentdouble"


def test_permissions_of_an_open_directory_are_tightened(directory: Path) -> None:
    """It may have been created by hand."""
    directory.mkdir()
    directory.chmod(0o777)
    running.credentials()

    assert 0o700 == directory.stat().st_mode & 0o777


def test_a_directory_of_another_user_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys would be taken for ours."""
    directory.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)

    with pytest.raises(AgentDoubleError, match="name one of yours by XDG_STATE_HOME"):
        running.credentials()


def test_an_unlisted_double_is_found_at_its_port_only(directory: Path) -> None:
    double = Connection("http://127.0.0.1:9", "t-1", "AK", "SK", "r")
    with running.announced(double, listed=False):
        assert ([], [double]) == (running.doubles(), running.at(9))

    assert [] == running.at(9)
