from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.processes import isolation
from agentdouble.processes.fork_server.confinement import Confinement
from agentdouble.processes.isolation import Isolation, Measure
from agentdouble.processes.workspace import Workspace
from tests.agentdouble.calling import body_of, refusal, text

REASON = "not here"


def machine(*names: str) -> Isolation:
    """Return what a machine with only these measures offers."""
    return Isolation(
        {
            name: Measure(name, "peace", None if name in names else REASON)
            for name in isolation.MEASURES
        }
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_in(tmp_path / "s" / "1")


def workspace_in(base: Path) -> Workspace:
    workspace = Workspace(home=base / "home", tmp=base / "tmp", runs=base / "run")
    for directory in (workspace.home, workspace.tmp, workspace.runs):
        directory.mkdir(parents=True)
    return workspace


def confinement_for(offered: Isolation, workspace: Workspace, **options: Any) -> Confinement | None:
    return offered.confinement_for(workspace, workspace.make_run(), **options)


def test_a_missing_measure_gives_its_reason_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are missing on systems other than Linux."""
    monkeypatch.setattr(sys, "platform", "darwin")

    result = isolation.find_out.__wrapped__()

    assert set(isolation.MEASURES) == set(result.measures)
    assert {(False, "requires Linux")} == {
        (measure.available, measure.why_not) for measure in result.measures.values()
    }
    assert all(measure.remedy for measure in result.measures.values())


def test_a_failing_probe_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measure is not offered if its probe fails."""

    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, "probe")

    monkeypatch.setattr(subprocess, "run", fail)

    result = isolation.find_out.__wrapped__()

    assert not any(measure.available for measure in result.measures.values())
    assert "the probe failed" in str(result.measures["files"].why_not)


def test_each_offered_measure_is_used(workspace: Workspace) -> None:
    """Landlock works alone too."""
    confinement = confinement_for(machine("landlock"), workspace)

    assert confinement is not None
    assert (True, None, None, None) == (
        confinement.landlock,
        confinement.namespaces,
        confinement.uid,
        confinement.process_limit,
    )
    assert str(workspace.tmp) == confinement.tmp


def test_without_network_isolation_a_session_shares_the_network(workspace: Workspace) -> None:
    """It does not get the host's network."""
    own = confinement_for(machine("files", "network"), workspace, network="own")
    unconfined = confinement_for(machine("landlock"), workspace, network="own")

    assert own is not None
    assert unconfined is not None
    assert "own" == own.network
    assert "shared" == unconfined.network


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a workspace away")
def test_kernels_of_a_session_share_a_user(workspace: Workspace, tmp_path: Path) -> None:
    """It owns the workspace from the first kernel on; other sessions differ."""
    offered = machine("files", "user")
    other = workspace_in(tmp_path / "t" / "2")

    results = [confinement_for(offered, space) for space in (workspace, workspace, other)]

    first, again, second = (item.uid if item else None for item in results)
    assert first == again != second
    assert first == workspace.home.stat().st_uid == workspace.tmp.stat().st_uid
    assert os.geteuid() == workspace.runs.stat().st_uid


def test_a_temporarily_failing_probe_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A momentary lack of descriptors does not leave sessions unconfined."""
    isolation.find_out.cache_clear()
    run_program = subprocess.run
    lacking = [True]

    def run_out(*arguments: Any, **options: Any) -> Any:
        if isolation._PROBE in arguments[0] and lacking:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return run_program(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", run_out)
    with Emulator(pool_size=0) as double:
        refused = refusal(double, "InvokeTool", **body_of(double, "print(1)"))
        lacking.clear()
        folder = text(double, "import os; print(os.getcwd())")
        offered = isolation.find_out().offers("files")

    assert (429, "QuotaExceeded") == refused[:2]
    assert "Not enough open files" in refused[2]
    assert ("/home/gem\n" == folder) == offered
