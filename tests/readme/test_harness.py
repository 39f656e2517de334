"""What the harness's page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentdouble import Emulator
from agentdouble.apps import simple
from doublecheck.cli.app import app
from doublecheck.run import pytest_run
from tests.readme.consoles import commands_of
from tests.readme.pages import FRONT, HARNESS, block
from tests.readme.projects import pytest_in

pytestmark = pytest.mark.once

TESTS = {
    f"test_my_{name}.py": block(HARNESS, "python", f"# test_my_{name}.py")
    for name in ("sandbox", "client", "retries", "clock", "data", "model", "sales")
}
APPLICATION = {
    "my_agent.py": block(FRONT, "python", "# my_agent.py"),
    "conftest.py": block(HARNESS, "python", "# conftest.py"),
    "test_my_application.py": block(HARNESS, "python", "# test_my_application.py"),
}
CALIBRATED = block(HARNESS, "console", "$ doublecheck calibrate")
SMALLEST = block(HARNESS, "text", "INV-04 (must)")


@pytest.mark.slow
def test_the_tests_pass(tmp_path: Path) -> None:
    """In a folder without any configuration."""
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)

    assert "11 passed" in pytest_in(tmp_path)


@pytest.mark.slow
def test_the_tests_of_an_application_pass(tmp_path: Path) -> None:
    """The override serves the application of the front page."""
    for name, text in APPLICATION.items():
        (tmp_path / name).write_text(text)

    assert "2 passed" in pytest_in(tmp_path)


def test_what_nobody_knows_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command settles an unknown in a profile."""
    monkeypatch.chdir(tmp_path)
    words = next(commands_of(CALIBRATED)).words

    with Emulator() as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        words[words.index("--url") + 1] = double.url
        ended = CliRunner().invoke(app, words[1:])

    assert 0 == ended.exit_code, ended.output
    assert 'U-SESSION-DUPLICATE = "409"' in (tmp_path / "profile.toml").read_text()


@pytest.mark.slow
def test_a_failure_is_told_for_its_smallest_input(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Here of a platform that ends a line where ``str.splitlines`` does."""
    complete = simple.result
    monkeypatch.setattr(
        simple, "result", lambda value: complete("\n".join(str(value).split("\u2028")))
    )

    pytest_run.run(["-k", "INV-04"], verbose=False, modules=["test_invocation"])

    lines = capfd.readouterr().err.splitlines()
    for line in SMALLEST.splitlines():
        assert line in lines
