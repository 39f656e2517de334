from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentdouble.cli import main
from tests.agentdouble.calling import TOKEN

_ASKING = (*("call", "clock", "doctor", "env", "faults", "journal", "session", "unknowns"),)
PATIENCE_S = 180  # a program takes half a minute to start and end on a busy machine
_URL = re.compile(r"https?://127\.0\.0\.1:\d+")


@dataclass
class CommandLine:
    """Runs ``agentdouble`` in a temporary folder and state directory."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in this process if it only sends requests."""
        if words[0] in _ASKING or words[-1] == "--help":
            return self.run_here(*words, typed=typed)
        return self.in_its_own_python(*words, typed=typed)

    def in_its_own_python(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end like a shell."""
        return subprocess.run(
            command(words),
            cwd=self.folder,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def run_here(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in this process, with a given folder and environment."""
        stdin, stdout, stderr = io.StringIO(typed), io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, _nothing_left_of(self.folder):
            patch.chdir(self.folder)
            for name in set(os.environ) - set(self.environment):
                patch.delenv(name)
            for name, value in {**self.environment, "COLUMNS": "80"}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["agentdouble", *words])
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main()
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(words, code, stdout.getvalue(), stderr.getvalue())

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(words),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextlib.contextmanager
def _nothing_left_of(folder: Path) -> Iterator[None]:
    """Undo what a refused serve command did to the process."""
    journal = logging.getLogger("agentdouble.journal.entries")
    level, path = journal.level, sys.path.copy()
    try:
        yield
    finally:
        journal.setLevel(level)
        sys.path[:] = path
        for name, module in tuple(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def command(words: Sequence[str]) -> list[str]:
    """Return the command line that runs ``agentdouble`` in a new Python process."""
    return [sys.executable, "-c", "from agentdouble.cli import main; main()", *words]


def command_line_in(directory: Path) -> CommandLine:
    """Return a command line whose folder and state are in this directory."""
    folder = directory / "folder"
    folder.mkdir()
    base = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTDOUBLE_", "PLATFORM_"))}
    environment = {**base, "XDG_STATE_HOME": str(directory / "state"), "PYTHONUNBUFFERED": "1"}
    environment["AGENTDOUBLE_TOKEN"] = TOKEN
    return CommandLine(folder, environment)


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    return command_line_in(tmp_path)


@dataclass
class Serving:
    """A double served by the command line: its start output, and its process."""

    process: subprocess.Popen[str]
    url: str
    greeting: str

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, stdout, stderr


@contextlib.contextmanager
def serving(command_line: CommandLine) -> Iterator[Callable[..., Serving]]:
    """Return a function that serves a double; end the remaining ones."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> Serving:
        process = command_line.start("serve", "--port", "0", *words)
        started.append(process)
        assert process.stdout is not None
        greeting = ""
        while "  curl " not in greeting:
            line = process.stdout.readline()
            if not line:
                pytest.fail(f"serve ended: {process.communicate()}")
            greeting += line
        match = _URL.search(greeting)
        assert match is not None
        return Serving(process, match[0], greeting)

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def serve(command_line: CommandLine) -> Iterator[Callable[..., Serving]]:
    with serving(command_line) as start:
        yield start


@pytest.fixture(scope="module")
def shared_command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line that finds ``shared_double``."""
    return command_line_in(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def shared_double(shared_command_line: CommandLine) -> Iterator[Serving]:
    """A double for a module's tests that neither stop it nor depend on its state."""
    with serving(shared_command_line) as start:
        yield start()
