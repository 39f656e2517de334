from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from agentdouble.cli.app import app as agentdouble_app
from doublecheck import Platform
from doublecheck.cli import app, main

pytestmark = pytest.mark.smoke

ALIKE = ("--allow-writes", "--html", "--json", "--reference-app")
APPS = {"agentdouble": agentdouble_app, "doublecheck": app}
BOX = re.compile("[\u2500-\u257f]")


def commands(of: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    of = of or typer.main.get_command(app)
    inner = getattr(of, "commands", None)
    if inner is None:
        yield name, of
    for word, command in (inner or {}).items():
        yield from commands(command, f"{name} {word}".strip())


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield the commands of both programs, by what a user types."""
    for program, of in APPS.items():
        yield from commands(typer.main.get_command(of), program)


def pages() -> Iterator[str]:
    """Yield each command, and each group of commands."""
    for name, _ in all_commands():
        words = name.split()
        yield from (" ".join(words[: size + 1]) for size in range(len(words)))


def options() -> Iterator[tuple[str, str, Any]]:
    for name, command in all_commands():
        for option in command.params:
            yield name, option.opts[0], option


def help_of(page: str) -> str:
    program, *words = page.split()
    done = CliRunner().invoke(
        APPS[program], [*words, "--help"], prog_name=program, env={"COLUMNS": "80"}
    )
    assert 0 == done.exit_code, done.output
    return done.stdout


@pytest.mark.parametrize("name", [name for name, _ in all_commands()])
def test_each_command_has_an_example_and_exit_codes(name: str) -> None:
    epilog = dict(all_commands())[name].epilog

    assert f"  {name}" in epilog
    assert re.search(r"Exit codes:\n  \S+", epilog)


@pytest.mark.parametrize("page", sorted({*pages()}))
def test_help_is_readable_at_80_columns(page: str) -> None:
    """It is plain in both programs: no boxes, no markup, no line or sentence that is cut."""
    lines = help_of(page).splitlines()

    assert [] == [line for line in lines if len(line) > 80 or BOX.search(line) or "[bold]" in line]
    assert [] == [line for line in lines[1:] if re.search(r"\w\.\.\.$", line)]  # not "FILE..."
    assert f"Usage: {page} " in lines[0] + lines[1]
    assert "Options:" in lines


def test_flags_are_shown_without_a_value() -> None:
    """So are the options that are made from the facts of a target."""
    flags = [(name, it) for name, it, parameter in options() if getattr(parameter, "is_flag", 0)]

    shown = [
        (name, flag)
        for name, flag in flags
        if re.search(rf"^ +(-\w, )?{flag} [A-Z]+( |$)", help_of(name), re.M)
    ]
    assert ([], True) == (shown, ("doublecheck run", "--allow-writes") in flags)


def test_shared_options_have_the_same_help() -> None:
    texts = defaultdict(set)
    for name, option, parameter in options():
        if option in ALIKE and name.startswith("doublecheck"):
            texts[option].add((parameter.metavar, parameter.help))

    assert dict.fromkeys(ALIKE, 1) == {option: len(texts[option]) for option in ALIKE}


def test_each_option_value_has_a_metavar() -> None:
    """The default would be the name of a type."""
    unnamed = [
        (name, option)
        for name, option, parameter in options()
        if not getattr(parameter, "is_flag", False)
        and option.startswith("-")
        and parameter.metavar is None
        and (name, option) != ("doublecheck contracts app", "--for")  # which shows its choices
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


def completed(line: str) -> list[str]:
    """Return what bash offers for the last word of a line; typer's script asks the program."""
    program, *words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = CliRunner().invoke(
        APPS[program],
        [],
        prog_name=program,
        env={f"_{program.upper()}_COMPLETE": "complete_bash", **asked},
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("agentdouble se", "serve"),
        ("doublecheck tw", "twin"),
        ("agentdouble call CreateT", "CreateTool"),
        ("agentdouble sign InvokeT", "InvokeTool"),
        ("agentdouble journal --action List", "ListSessions"),
        ("agentdouble env --for ve", "veadk"),
        ("agentdouble exec --for agent", "agentkit"),
        ("agentdouble serve --unknown U-TTL-EX", "U-TTL-EXTENDS=sliding"),
        ("agentdouble faults arm ", "lose_answer"),
        ("agentdouble faults arm fail Invoke", "InvokeTool"),
        ("agentdouble faults arm fail ping st", "status="),
        ("doublecheck calibrate --only U-TTL-EX", "U-TTL-EXTENDS"),
        ("doublecheck run --only PRB-0", "PRB-01"),
        ("doublecheck run --only I", "INV"),
        ("doublecheck run --target li", "live"),
        ("doublecheck run --level sm", "smoke"),
        ("doublecheck contracts app --for ", "agentkit"),
    ],
)
def test_the_shell_completes_names(line: str, offered: str) -> None:
    """Those of commands, actions, clients, unknowns, faults, clauses, targets."""
    names = completed(line)

    assert offered in names
    assert [] == [name for name in names if not name.startswith(line.rpartition(" ")[2])]


def test_the_shell_completes_what_a_double_has(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, faults and services; nothing, and no error, without a double."""
    session = platform.run_code("1", session_id="s1")
    fault = platform.faults.arm("fail", "ping")
    for name, value in platform.target.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AGENTDOUBLE_URL", platform.url)

    sessions = completed("agentdouble session attach ")
    assert session.session_id in sessions
    assert len(sessions) == 2
    assert [fault.id] == completed("agentdouble faults release ")
    assert [] == completed("agentdouble mcp delete ")
    monkeypatch.setenv("AGENTDOUBLE_URL", "http://127.0.0.1:9")
    assert [] == completed("agentdouble session attach ")
