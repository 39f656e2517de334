from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.errors import DeclarationError, UnknownRuntimeError
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.asking import APPLICATIONS

SAYING: dict[str, Any] = {"command": [sys.executable, "-S", "saying.py"], "directory": APPLICATIONS}
DECLARED = {"name": "declared", **SAYING, "directory": str(APPLICATIONS)}


@pytest.fixture(scope="module")
def _running() -> Iterator[Emulator]:
    with Emulator(runtimes=[DECLARED]) as double:
        yield double


@pytest.fixture
def double(_running: Emulator) -> Emulator:
    _running.reset()
    return _running


def says(double: Emulator, name: str) -> str:
    answer = http.get(f"{double.runtimes.address(name)}/")
    assert 200 == answer.status_code, answer.text
    return answer.text


def test_runtime_is_created_used_and_deleted(double: Emulator) -> None:
    """From Python; its output can be read."""
    address = double.runtimes.create("made", **SAYING, environment={"SAYS": "hello"})

    assert f"{double.url}/runtimes/made" == address
    assert ("declared", "made") == double.runtimes.names
    assert "hello" == http.get(f"{address}/a/path").text
    printed: list[str] = []
    while "asked for /a/path" not in printed:  # the pipe may be behind the answer
        printed = double.runtimes.logs("made")
    double.runtimes.delete("made")
    assert ("declared",) == double.runtimes.names
    assert 404 == http.get(f"{address}/a/path").status_code
    with pytest.raises(UnknownRuntimeError, match=r"no runtime 'made'\. There are declared\."):
        double.runtimes.delete("made")


def test_reset_restores_declared_runtimes(double: Emulator) -> None:
    """As in the settings, whatever was changed."""
    double.runtimes.create("made", **SAYING)
    double.runtimes.update("declared", environment={"SAYS": "changed"})
    double.reset()

    assert ("declared",) == double.runtimes.names
    assert "nothing" == says(double, "declared")
    double.runtimes.delete("declared")
    double.reset()
    assert ("declared",) == double.runtimes.names


def test_created_runtimes_survive_a_restart(tmp_path: Path) -> None:
    """With id, versions and current version, even if the directory is gone."""
    folder = tmp_path / "folder"
    folder.mkdir()
    settings: dict[str, Any] = {"state": f"sqlite:///{tmp_path}/kept.db", "runtimes": [DECLARED]}
    with Emulator(**settings) as first:
        first.runtimes.create("made", command="serve", directory=folder)
        first.runtimes.create("deleted", **SAYING)
        first.runtimes.update("made", **SAYING, environment={"SAYS": "second"})
        first.runtimes.update("made", environment={"SAYS": "third"}, release=False)
        first.runtimes.delete("deleted")
        before = first.runtimes.versions("made")
    folder.rmdir()

    with Emulator(**settings) as second:
        assert ("made", "declared") == second.runtimes.names
        assert before == second.runtimes.versions("made")
        assert "second" == says(second, "made")
        assert 4 == second.runtimes.update("made", max_instances=2)
        assert "third" == says(second, "made")

    duplicate = {**DECLARED, "name": "made"}
    with pytest.raises(
        DeclarationError, match="it was created at run time, and the state has kept"
    ):
        Emulator(**{**settings, "runtimes": [duplicate]}).start()
