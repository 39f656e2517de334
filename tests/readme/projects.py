"""Create and run the project of a reader who follows a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme.pages import read

BIN = Path(sys.executable).parent


def forget(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Undo changes to the import path and to an application's modules after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in modules:
        monkeypatch.setitem(sys.modules, name, sys)
        del sys.modules[name]


def conftest(page: str, named: str) -> str:
    """Return a conftest with the page's PlatformConfig that contains this text."""
    (config,) = (
        call for call in re.findall(r"`(PlatformConfig\(.*?\))`", read(page)) if named in call
    )
    return (
        "import pytest\nfrom doublecheck import PlatformConfig\n\n"
        "@pytest.fixture(scope='session')\ndef platform_config():\n"
        f"    return {config}\n"
    )


def pytest_in(folder: Path) -> str:
    """Run the tests in a folder and return pytest's output."""
    return bash(f"{sys.executable} -m pytest -q -p no:cacheprovider", folder, check=False)


def bash(command: str, folder: Path, *, check: bool = True, **environment: str) -> str:
    """Run a command with bash in this environment and return its output."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not check or 0 == done.returncode, (command, done.stdout, done.stderr)
    return done.stdout + done.stderr
