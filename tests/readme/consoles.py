"""Parse and run the commands in console blocks, look up their options, and run a reader's project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from agentdouble.cli.app import app as agentdouble_app
from doublecheck.cli import app as doublecheck_app
from tests.readme.pages import read

APPS = {"agentdouble": agentdouble_app, "doublecheck": doublecheck_app}


@dataclass(frozen=True)
class Shown:
    """A command on a page, with the output that the page shows for it."""

    command: str
    printed: str

    @property
    def words(self) -> list[str]:
        """Split the command as a shell does."""
        return shlex.split(self.command.replace("\\\n", ""))


def commands_of(text: str) -> Iterator[Shown]:
    """Yield the commands of a block; a quote or a backslash continues one on the next line."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines(keepends=True)
        size = next(size for size in range(1, len(lines) + 1) if _complete("".join(lines[:size])))
        yield Shown("".join(lines[:size]).rstrip("\n"), "".join(lines[size:]))


def _complete(command: str) -> bool:
    if command.endswith("\\\n"):
        return False
    try:
        return bool(shlex.split(command))
    except ValueError:  # a quote is open
        return False


def known_options(config: pytest.Config) -> Mapping[str, set[str]]:
    """Return the options of each command of ours, and of pytest with the plugin."""
    words_known = {
        f"{program} {name}".strip(): {word for param in command.params for word in param.opts}
        for program, app in APPS.items()
        for name, command in _commands(typer.main.get_command(app))
    }
    return {**words_known, "pytest": set(_options_of_pytest(config))}


def _commands(of: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, of
    for word, command in getattr(of, "commands", {}).items():
        yield from _commands(command, f"{name} {word}".strip())


def _options_of_pytest(config: pytest.Config) -> Iterator[str]:
    yield "--junit-xml"  # which is --junitxml by another name
    for option in config._parser._anonymous.options:  # as --help reads them
        yield from option.names()
    for group in config._parser._groups:
        for option in group.options:
            yield from option.names()


def unknown(words: list[str], options: Mapping[str, set[str]]) -> list[str]:
    """Return the command if it does not exist, else the options that it does not have."""
    words = words[: words.index("--")] if "--" in words else words
    name = max(
        (opt for opt in options if words[: len(opt.split())] == opt.split()), key=len, default=""
    )
    if name in ("", *APPS) and words[1:2] != ["--help"]:
        return words
    used = {word.split("=")[0] for word in words if word.startswith("-")}
    return sorted(used - options[name] - {"--help"})


def run(command: str, url: str) -> str:
    """Run an agentdouble or curl command in this process against the double at ``url``.

    A new interpreter for each would take seconds.
    """
    command = command.replace("http://127.0.0.1:8000", url).replace("\\\n", "")
    inner = re.search(r"\$\((agentdouble .*?)\)", command)
    if inner is not None:
        command = command.replace(inner[0], run(inner[1], url).strip())
    program, *words = shlex.split(command)
    if program == "curl":
        return _curl(words)
    done = CliRunner().invoke(APPS[program], [*words, "--url", url])
    assert 0 == done.exit_code, (command, done.output, done.exception)
    return done.stdout


def _curl(words: list[str]) -> str:
    options = list(zip(words[1::2], words[2::2], strict=True))
    headers = dict(value.split(": ") for option, value in options if option == "-H")
    body = dict(options).get("-d")
    method = "GET" if body is None else "POST"
    answer = httpx.request(method, words[0], headers=headers, content=body, timeout=60)
    assert 200 == answer.status_code, answer.text
    return answer.text


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
