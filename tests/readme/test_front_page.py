"""The front page: its two commands, and what its recipes show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentdouble import Emulator
from doublecheck.cli.app import app
from tests.readme.consoles import commands_of
from tests.readme.pages import FRONT, block, blocks
from tests.readme.projects import bash

pytestmark = pytest.mark.once

COMMANDS = [block(FRONT, "sh", shell.text) for shell in blocks(FRONT, "sh")]
APPLICATION = block(FRONT, "python", "# my_agent.py")
ITS_TEST = block(FRONT, "python", "# test_answers.py")
EXEC = block(FRONT, "console", "$ agentdouble exec")
STAGING = block(FRONT, "toml", "# pyproject.toml")
CHECKED = block(FRONT, "console", "$ export STAGING_ACCESS_KEY")


def test_there_are_two_commands_for_a_fresh_machine() -> None:
    """One ends with the demo, one passes the tests, and each makes its own environment."""
    demo, tests = COMMANDS

    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.count("\n") == 1
    assert demo.endswith(" && .venv/bin/agentdouble demo\n")
    assert tests.endswith(" && .venv/bin/python -m pytest\n")


@pytest.mark.slow
def test_a_program_finds_the_double_that_exec_starts(tmp_path: Path) -> None:
    """It prints the result of its code in the sandbox."""
    program, _ = commands_of(EXEC)

    assert '"text/plain": "42"' in bash(program.command, tmp_path)


@pytest.mark.slow
def test_an_application_is_served_to_its_test(tmp_path: Path) -> None:
    """With the two files of the recipe and nothing else."""
    (tmp_path / "my_agent.py").write_text(APPLICATION)
    (tmp_path / "test_answers.py").write_text(ITS_TEST)
    _, tested = commands_of(EXEC)

    assert "1 passed" in bash(tested.command, tmp_path)


@pytest.mark.slow
def test_a_target_of_the_project_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands take a double for a live platform, and each does what it says of it."""
    monkeypatch.chdir(tmp_path)
    export, *others = commands_of(CHECKED)
    commands = {command.words[1]: command.words for command in others}
    narrowed = {"run": ["-k", "PRB-01"], "twin": [], "calibrate": ["--only", "U-PROBE-BODIES"]}

    with Emulator() as double:
        table = STAGING.replace("t-1", "t-sandbox")
        Path("pyproject.toml").write_text(re.sub(r"https://\w+\.example\.com", double.url, table))
        for name, value in double.environment().items():
            if (variable := name.replace("PLATFORM", "STAGING")) in export.command:
                monkeypatch.setenv(variable, value)
        results = [
            CliRunner().invoke(app, [*commands[name][1:], *words])
            for name, words in narrowed.items()
        ]

    assert [0, 0, 0] == [run.exit_code for run in results], [run.output for run in results]
    written = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "twin.html", "profile.toml"} <= written
