from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.cli.doctor import BASH_REMEDY
from agentdouble.sandbox.browser import chromium
from tests.agentdouble.cli.conftest import CommandLine, command_line_in

INSTALL = "pip install 'agentdouble[emulator]'"


def doctor(command_line: CommandLine, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code and the findings by id, with these variables set."""
    named = replace(command_line, environment={**command_line.environment, **environment})
    done = named.run("doctor", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode == 0) == answer["can_run"]
    return done.returncode, {finding["id"]: finding for finding in answer["findings"]}


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The findings on this machine, which can run a double."""
    code, findings = doctor(command_line_in(tmp_path_factory.mktemp("here")))
    assert code == 0
    return findings


def test_doctor_starts_a_double_and_runs_code(checks: dict[str, dict[str, Any]]) -> None:
    """Everything essential is available."""
    essential = {check["id"] for check in checks.values() if check["essential"] and check["good"]}

    assert {"python", "system", "settings", "double"} == essential
    assert checks["double"]["says"].startswith("started, ran code and stopped in ")


@pytest.mark.slow
def test_missing_features_are_reported_with_their_install_command(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A double can run without them."""
    monkeypatch.setitem(sys.modules, "deno", None)

    code, findings = doctor(command_line, AGENTDOUBLE_BROWSER="no-such", PATH="/none")

    remedies = {"bash": BASH_REMEDY, "javascript": INSTALL, "browser": chromium.INSTALL}
    assert remedies == {name: findings[name]["remedy"] for name in remedies}
    assert all(findings[name]["says"].startswith("not here: ") for name in remedies)
    assert (0, "not here: no no-such") == (code, findings["browser"]["says"])


def test_invalid_setting_keeps_a_double_from_running(command_line: CommandLine) -> None:
    """With the error message of serve."""
    (command_line.folder / "agentdouble.toml").write_text("pool_siz = 3\n")

    code, findings = doctor(command_line)

    assert (1, False) == (code, findings["settings"]["good"])
    assert "pool_size" in findings["settings"]["says"]


def test_double_that_runs_no_code_is_reported(command_line: CommandLine) -> None:
    """It is tried with the current settings, which name a missing module."""
    code, findings = doctor(command_line, AGENTDOUBLE_PRELOAD='["no_such"]')

    assert (1, False) == (code, findings["double"]["good"])
    assert "no_such" in findings["double"]["says"]


@pytest.mark.once
def test_every_step_of_the_demo_succeeds(command_line: CommandLine) -> None:
    """The transcript shows each step, marks none as wrong, and the exit code is 0.

    A pipe gets plain text, without colours.
    """
    done = command_line.run("demo")

    assert (0, "") == (done.returncode, done.stderr)
    for text in (
        "    42\n",
        "    [0, 1, 4, 9, 16]\n",
        "    30\n",
        "NameError: name 'squares' is not defined",
        "return cake / guests",
        "PNG image, ",
        "2 sessions were alive; none is, and their processes are gone",
        "the session was destroyed: its state is gone",
        "All 8 steps gave the expected result",
        "prints the web console's address",
    ):
        assert text in done.stdout
    assert "not so" not in done.stdout
    assert "\x1b" not in done.stdout
