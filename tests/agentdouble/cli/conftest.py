from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentdouble.cli import main

_ASKING = ("env", "unknowns", "tool", "session", "attach")
_URL = re.compile(r"https?://127\.0\.0\.1:\d+")


@dataclass
class CommandLine:
    """Runs ``agentdouble`` in a folder and a state directory of its own."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; one that only asks a double needs no Python of its own."""
        if words[0] in _ASKING:
            return self._run_here(words)
        return subprocess.run(
            _command(words),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def _run_here(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, with the folder and environment it would have."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, Path(os.devnull).open() as nothing:
            patch.chdir(self.folder)
            for name in set(os.environ) - set(self.environment):
                patch.delenv(name)
            for name, value in {**self.environment, "COLUMNS": "80"}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["agentdouble", *words])
            for name, stream in (("stdin", nothing), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended, old_typer():
                main()
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(words, code, stdout.getvalue(), stderr.getvalue())

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            _command(words),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextlib.contextmanager
def old_typer() -> Iterator[None]:
    """Let the oldest typer use the newest click, which warns about that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*click.*")
        yield


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", "from agentdouble.cli import main; main()", *words]


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    folder = tmp_path / "folder"
    folder.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTDOUBLE_", "PLATFORM_"))}
    environment = {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONUNBUFFERED": "1"}
    return CommandLine(folder, environment)


@dataclass
class Serving:
    """A double served by the command line: what it printed at start, and its process."""

    process: subprocess.Popen[str]
    url: str
    greeting: str

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stdout, stderr


@pytest.fixture
def serve(command_line: CommandLine) -> Iterator[Callable[..., Serving]]:
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
        found = _URL.search(greeting)
        assert found is not None
        return Serving(process, found[0], greeting)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
