"""What the README shows is run here, word for word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agentdouble import Emulator, Settings
from agentdouble.apps.loading import load

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def _block(language: str, start: str) -> str:
    found = [block for block in _blocks(language) if block.startswith(start)]
    assert len(found) == 1
    return found[0]


def test_there_are_two_commands_for_a_fresh_machine() -> None:
    """One ends with the demo, one passes the tests, and each makes its own environment."""
    demo, tests = _blocks("sh")

    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.count("\n") == 1
    assert demo.endswith(" && .venv/bin/agentdouble demo\n")
    assert tests.endswith(" && .venv/bin/python -m pytest\n")


def test_the_application_answers_in_the_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's own application runs the code of its prompt."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "my_agent", sys)  # taken away again afterwards
    file = tmp_path / "my_agent.py"
    file.write_text(_block("python", "# my_agent.py"))

    with Emulator(load(f"{file}:app")) as double:
        answer = httpx.post(
            f"{double.url}/invoke",
            headers={"user_id": "ann", "session_id": "s1"},
            content='{"prompt": "print(6 * 7)"}',
            timeout=30,
        )

    assert "42\n" == answer.json()


def test_the_tests_pass(tmp_path: Path) -> None:
    """The README's own tests pass in a folder without any configuration."""
    (tmp_path / "test_my_agent.py").write_text(_block("python", "# test_my_agent.py"))

    assert "2 passed" in _pytest(tmp_path)


def test_the_tests_of_an_application_pass(tmp_path: Path) -> None:
    """The README's override serves the README's application."""
    for name in ("my_agent.py", "conftest.py", "test_my_application.py"):
        (tmp_path / name).write_text(_block("python", f"# {name}"))

    assert "1 passed" in _pytest(tmp_path)


def _pytest(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_notebook_lines_run() -> None:
    """The README's lines for a notebook run as they stand."""
    exec(_block("python", "import doublecheck"), {})


def test_the_settings_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's choice among the unknowns is one that can be made."""
    (tmp_path / "agentdouble.toml").write_text(_block("toml", "# agentdouble.toml"))
    monkeypatch.chdir(tmp_path)

    assert Settings.load().unknowns == {"U-TTL-EXTENDS": "sliding"}
