"""Environments for clients: virtual environments, and a folder of npm packages."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.mcp_official.suite import OLDEST_NODE, Node, NotInstalledError, find_node

PROGRAMS = Path(__file__).with_name("programs")
FROM_NPM = Path(__file__).with_name("from_npm")
INSTALL_TIMEOUT_S = 600


class NotMadeError(Exception):
    """An environment cannot be created."""


class Environment(Protocol):
    """The place where a client is installed."""

    def make(self, cache: Path) -> None:
        """Create it below a folder unless it exists; raise NotMadeError."""

    def command(self, cache: Path) -> Sequence[str]:
        """Return the command that runs a program; append the program's arguments."""

    def version(self, cache: Path) -> str:
        """Return the version of the environment's package."""


@dataclass(frozen=True)
class Python:
    """A virtual environment for ``package``, created from requirements."""

    package: str
    requirements: tuple[str, ...]

    def make(self, cache: Path) -> None:
        folder = self._folder(cache)
        if (folder / "made").is_file():
            return
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv", path=_path())
        if uv is None:
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([self._python(cache), "-m", "pip", "install", "-q", *self.requirements])
        else:
            _run([uv, "venv", "-q", "--python", sys.executable, str(folder)])
            _run([uv, "pip", "install", "-q", "-p", self._python(cache), *self.requirements])
        (folder / "made").touch()

    def command(self, cache: Path) -> Sequence[str]:
        return [self._python(cache), "-W", "ignore", str(PROGRAMS / "launch.py")]

    def version(self, cache: Path) -> str:
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        return _run([self._python(cache), "-c", code]).strip()

    def _folder(self, cache: Path) -> Path:
        made_of = repr((self.requirements, sys.version_info[:2]))
        return cache / f"{self.package}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"

    def _python(self, cache: Path) -> str:
        return str(self._folder(cache) / "bin" / "python")


@dataclass(frozen=True)
class Npm:
    """The folder of all JavaScript clients, installed from its lock; ``package`` is one of them."""

    package: str

    def make(self, cache: Path) -> None:
        folder = cache / "npm"
        lock = folder / "package-lock.json"
        locked = FROM_NPM / lock.name
        if not lock.is_file() or lock.read_bytes() != locked.read_bytes():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            shutil.copy(FROM_NPM / "package.json", folder)
            shutil.copy(locked, lock)
            _install(folder)

    def command(self, cache: Path) -> Sequence[str]:
        folder = cache / "npm"
        for program in PROGRAMS.glob("*.mjs"):  # Node looks for packages beside the program
            shutil.copy(program, folder)
        return [_node().node, str(folder / "launch.mjs")]

    def version(self, cache: Path) -> str:
        package = cache / "npm" / "node_modules" / self.package / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])


def _install(folder: Path) -> None:
    """Install the packages of a lock; on failure, remove the lock so that the next run retries."""
    try:
        command = [*_node().npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        _run(command, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _node() -> Node:
    try:
        return find_node()
    except NotInstalledError:
        needed = f"The JavaScript clients need Node {OLDEST_NODE} or newer"
        raise NotMadeError(f"{needed}: pip install 'agentdouble[conformance]'") from None


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Return a command's output; raise NotMadeError if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise NotMadeError(f"{' '.join(command)} takes too long.") from None
    except subprocess.CalledProcessError as error:
        output = error.stderr.strip()[-2000:]
        raise NotMadeError(f"{' '.join(command)} failed: {output}") from None
    return done.stdout


def _path() -> str:
    """Return the search path for programs: this interpreter's folder first."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
