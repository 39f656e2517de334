"""Parse and run the commands in console blocks, and look up their options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from agentdouble.cli.app import app as agentdouble_app
from doublecheck.cli import app as doublecheck_app

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
