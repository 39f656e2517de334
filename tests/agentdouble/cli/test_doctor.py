from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentdouble.sandbox.browser import chromium, driver
from agentdouble.sandbox.javascript import deno
from tests.agentdouble.cli.conftest import CommandLine

INSTALL = "pip install 'agentdouble[emulator]'"


def findings(command_line: CommandLine) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(command_line.run("doctor", "--json").stdout)
    return told


def javascript(command_line: CommandLine) -> dict[str, Any]:
    (found,) = (one for one in findings(command_line) if one["name"] == "JavaScript")
    return found


def put_in_place_of_deno(patch: pytest.MonkeyPatch, engine: Path | None) -> None:
    """Have its package be missing, or name another engine."""
    package = None if engine is None else SimpleNamespace(find_deno_bin=lambda: str(engine))
    patch.setitem(sys.modules, "deno", package)


def test_what_is_here_and_what_is_not_is_told(command_line: CommandLine) -> None:
    """A line for each finding; as JSON the same, whole."""
    told = [("✔ " if one["good"] else "✘ ") + one["name"] for one in findings(command_line)]
    lines = command_line.in_its_own_python("doctor").stdout.splitlines()

    assert ["Python", "kernels", "JavaScript"] == [one[2:] for one in told[:3]]
    assert told == [" ".join(line.split()[:2]) for line in lines if line[0] in "✔✘"]


def test_the_engine_of_javascript_is_named_with_its_version(command_line: CommandLine) -> None:
    """What was installed is tried, not looked up."""
    said = subprocess.run([deno.find(), "--version"], capture_output=True, text=True, check=True)
    version = said.stdout.split()[1]

    assert {
        "name": "JavaScript",
        "says": f"deno {version} at {deno.find()}",
        "good": True,
        "remedy": None,
    } == javascript(command_line)


def test_a_missing_engine_is_told_with_its_remedy(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy is the command that installs it."""
    put_in_place_of_deno(monkeypatch, None)

    assert {
        "name": "JavaScript",
        "says": "not here: deno is not installed",
        "good": False,
        "remedy": INSTALL,
    } == javascript(command_line)


def test_an_engine_that_does_not_run_is_told(
    command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that this machine cannot run is no engine."""
    broken = tmp_path / "engine"
    broken.write_text("#!/nowhere/shell\n")
    broken.chmod(0o755)
    put_in_place_of_deno(monkeypatch, broken)

    found = javascript(command_line)

    assert (False, INSTALL) == (found["good"], found["remedy"])
    assert found["says"].startswith("not here: ")


def browser(command_line: CommandLine, **environment: str) -> list[dict[str, Any]]:
    named = replace(command_line, environment={**command_line.environment, **environment})
    return [one for one in findings(named) if one["name"] in ("browser", "playwright")]


def test_a_missing_browser_is_told_with_its_remedy(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a missing Playwright: each with the command that installs it."""
    monkeypatch.setitem(sys.modules, "playwright", None)

    told = browser(command_line, AGENTDOUBLE_BROWSER="no-such")

    assert [
        {
            "name": "browser",
            "says": "not here: no-such",
            "good": False,
            "remedy": chromium.INSTALL,
        },
        {
            "name": "playwright",
            "says": "not here: no screenshots, no actions",
            "good": False,
            "remedy": driver.INSTALL,
        },
    ] == told


def test_the_browser_of_the_settings_is_named(command_line: CommandLine, tmp_path: Path) -> None:
    """Whatever can be executed is taken."""
    path = tmp_path / "my-browser"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)

    told = browser(command_line, AGENTDOUBLE_BROWSER=str(path))

    assert ("browser", f"{path}, one for each session that asks", True, None) == tuple(
        told[0].values()
    )
