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
            _run([self.python(cache), "-m", "pip", "install", "-q", *self.requirements])
        else:
            _run([uv, "venv", "-q", "--python", sys.executable, str(folder)])
            _run([uv, "pip", "install", "-q", "-p", self.python(cache), *self.requirements])
        (folder / "made").touch()

    def command(self, cache: Path) -> Sequence[str]:
        return [self.python(cache), "-W", "ignore", str(PROGRAMS / "launch.py")]

    def version(self, cache: Path) -> str:
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        return _run([self.python(cache), "-c", code]).strip()

    def _folder(self, cache: Path) -> Path:
        made_of = repr((self.requirements, sys.version_info[:2]))
        return cache / f"{self.package}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"

    def python(self, cache: Path) -> str:
        return str(self._folder(cache) / "bin" / "python")


@dataclass(frozen=True)
class Npm:
    """The folder of all JavaScript clients, installed from its lock; ``package`` is one of them."""

    package: str

    def make(self, cache: Path) -> None:
        install_npm(FROM_NPM, cache / "npm")

    def command(self, cache: Path) -> Sequence[str]:
        folder = cache / "npm"
        for program in PROGRAMS.glob("*.mjs"):  # Node looks for packages beside the program
            shutil.copy(program, folder)
        return [node().node, str(folder / "launch.mjs")]

    def version(self, cache: Path) -> str:
        package = cache / "npm" / "node_modules" / self.package / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])


def install_npm(source: Path, folder: Path) -> None:
    """Install the packages of a lock; on failure, remove the folder so that the next run retries."""
    lock = folder / "package-lock.json"
    if lock.is_file() and lock.read_bytes() == (source / lock.name).read_bytes():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", lock.name):
        shutil.copy(source / name, folder)
    try:
        _run([*node().npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    except BaseException:
        shutil.rmtree(folder)
        raise


def node() -> Node:
    try:
        return find_node()
    except NotInstalledError:
        needed = f"The JavaScript programs need Node {OLDEST_NODE} or newer"
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
