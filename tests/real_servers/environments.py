"""Environments for servers: virtual environments, and a folder of npm packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.mcp_official.suite import find_node

HERE = Path(__file__).parent
INSTALL_TIMEOUT_S = 600


class Environment(Protocol):
    """The place where a server is installed."""

    def make(self, cache: Path) -> None:
        """Install it below a folder unless it is there."""

    def command(self, cache: Path) -> Sequence[str]:
        """Return the command that runs the server."""


@dataclass(frozen=True)
class Npm:
    """A program from the packages that ``from_npm`` pins, or one of ours that uses them."""

    program: str
    bundled: bool = False

    def make(self, cache: Path) -> None:
        folder, lock = cache / "npm", "package-lock.json"
        done = folder / "made"
        if done.is_file() and done.read_bytes() == (HERE / "from_npm" / lock).read_bytes():
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE / "from_npm", folder)
        run([*find_node().npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        shutil.copy(folder / lock, done)

    def command(self, cache: Path) -> Sequence[str]:
        folder = cache / "npm"
        if self.bundled:  # Node looks for packages beside the program
            shutil.copy(HERE / "programs" / self.program, folder)
            return [find_node().node, str(folder / self.program)]
        return [find_node().node, str(folder / "node_modules" / self.program)]


@dataclass(frozen=True)
class Python:
    """A program of ours in a virtual environment with a requirement."""

    requirement: str
    program: str

    def make(self, cache: Path) -> None:
        folder = self._folder(cache)
        if (folder / "made").is_file():
            return
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", self.requirement])
        (folder / "made").touch()

    def command(self, cache: Path) -> Sequence[str]:
        return [str(self._folder(cache) / "bin" / "python"), str(HERE / "programs" / self.program)]

    def _folder(self, cache: Path) -> Path:
        return cache / "".join(char if char.isalnum() else "-" for char in self.requirement)


def run(command: Sequence[str], folder: Path | None = None) -> None:
    """Run a command; raise RuntimeError with its output if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
