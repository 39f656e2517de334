from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from doublecheck.cli import app, main

pytestmark = pytest.mark.smoke

ALIKE = ("--allow-writes", "--html", "--json", "--reference-app")


def commands(of: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    of = of or typer.main.get_command(app)
    inner = getattr(of, "commands", None)
    if inner is None:
        yield name, of
    for word, command in (inner or {}).items():
        yield from commands(command, f"{name} {word}".strip())


def options() -> Iterator[tuple[str, str, Any]]:
    for name, command in commands():
        for option in command.params:
            yield name, option.opts[0], option


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_each_command_has_an_example_and_exit_codes(name: str) -> None:
    epilog = dict(commands())[name].epilog

    assert f"  doublecheck {name}" in epilog
    assert "[bold]Exit codes[/bold]  0: " in epilog


def test_shared_options_have_the_same_help() -> None:
    texts = defaultdict(set)
    for _, option, parameter in options():
        if option in ALIKE:
            texts[option].add((parameter.metavar, parameter.help))

    assert dict.fromkeys(ALIKE, 1) == {option: len(texts[option]) for option in ALIKE}


def test_each_option_value_has_a_metavar() -> None:
    """The default would be the name of a type."""
    unnamed = [
        (name, option)
        for name, option, parameter in options()
        if not getattr(parameter, "is_flag", False)
        and parameter.metavar is None
        and option != "--for"  # which shows its choices
    ]

    assert [] == unnamed


@pytest.mark.parametrize(
    "words",
    [
        ("report", "none.json"),
        ("twin", "--url", "http://127.0.0.1:1", "--html", "none/twin.html"),
        ("calibrate", "--url", "http://127.0.0.1:1", "-o", "none/profile.toml"),
    ],
)
def test_a_missing_file_is_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    """The error comes before any request."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["doublecheck", *words])

    with pytest.raises(SystemExit) as ended:
        main()

    (line,) = capsys.readouterr().err.splitlines()
    assert (2, True) == (ended.value.code, line.startswith("doublecheck: "))
    assert "none" in line


@pytest.mark.parametrize(
    ("program", "command"), [("agentdouble", "serve"), ("doublecheck", "twin")]
)
def test_the_shell_completes_commands(program: str, command: str) -> None:
    """Typer's script asks the program itself, with these variables."""
    words = {"COMP_WORDS": f"{program} {command[:2]}", "COMP_CWORD": "1"}
    completing = {f"_{program.upper()}_COMPLETE": "complete_bash", **words}
    done = subprocess.run(
        [Path(sys.executable).parent / program],
        env={**os.environ, **completing},
        capture_output=True,
        text=True,
        check=True,
    )

    assert command in done.stdout.split()
