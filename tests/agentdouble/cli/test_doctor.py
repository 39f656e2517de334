from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.sandbox.browser import chromium
from tests.agentdouble.cli.conftest import CommandLine, command_line_in

INSTALL = "pip install 'agentdouble[emulator]'"


def doctor(command_line: CommandLine, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code and the findings by their ids, with these variables set."""
    named = replace(command_line, environment={**command_line.environment, **environment})
    done = named.run("doctor", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode == 0) == answer["can_run"]
    return done.returncode, {finding["id"]: finding for finding in answer["findings"]}


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The findings on this machine, on which a double can run."""
    code, findings = doctor(command_line_in(tmp_path_factory.mktemp("here")))
    assert code == 0
    return findings


def test_a_double_is_started_and_runs_code(checks: dict[str, dict[str, Any]]) -> None:
    """That it can run here is told by one that has; what is essential is all there."""
    essential = {check["id"] for check in checks.values() if check["essential"] and check["good"]}

    assert {"python", "system", "settings", "double"} == essential
    assert checks["double"]["says"].startswith("started, ran code and stopped in ")


@pytest.mark.slow
def test_what_is_missing_is_told_with_what_brings_it(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has the command that installs it, and a double can run without."""
    monkeypatch.setitem(sys.modules, "deno", None)

    code, findings = doctor(command_line, AGENTDOUBLE_BROWSER="no-such")

    remedies = {"javascript": INSTALL, "browser": chromium.INSTALL}
    assert remedies == {name: findings[name]["remedy"] for name in remedies}
    assert all(findings[name]["says"].startswith("not here: ") for name in remedies)
    assert (0, "not here: no no-such") == (code, findings["browser"]["says"])


def test_a_setting_that_is_wrong_keeps_a_double_from_running(command_line: CommandLine) -> None:
    """It is told in the words that serve would refuse it in."""
    (command_line.folder / "agentdouble.toml").write_text("pool_siz = 3\n")

    code, findings = doctor(command_line)

    assert (1, False) == (code, findings["settings"]["good"])
    assert "pool_size" in findings["settings"]["says"]


def test_a_double_that_runs_no_code_is_told(command_line: CommandLine) -> None:
    """It is tried with the settings as they are; here they name a module that is not there."""
    code, findings = doctor(command_line, AGENTDOUBLE_PRELOAD='["no_such"]')

    assert (1, False) == (code, findings["double"]["good"])
    assert "no_such" in findings["double"]["says"]
