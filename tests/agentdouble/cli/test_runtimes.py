from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator, environment
from tests.agentdouble.calling import http
from tests.agentdouble.cli.conftest import CommandLine

SAYING = Path(__file__).parent.parent / "runtimes" / "applications" / "saying.py"
COMMAND = f"{sys.executable} -S saying.py"


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    sources = tmp_path_factory.mktemp("sources")
    (sources / "saying.py").write_text(SAYING.read_text())
    with Emulator(runtime_sources=(sources,)) as double:
        yield double


@pytest.fixture
def double(_running: Emulator, command_line: CommandLine) -> Emulator:
    """A double whose keys the commands have, and which lets them name its folder of sources."""
    _running.reset()
    command_line.folder = _running.settings.runtime_sources[0]
    command_line.environment |= environment.variables(_running.connection)
    return _running


class Commands:
    def __init__(self, command_line: CommandLine, double: Emulator) -> None:
        self._command_line = command_line
        self._url = ("--url", double.url)

    def lines(self, *words: str) -> str:
        """Run a command that succeeds and return what it printed."""
        done = self._command_line.run("runtime", *words, *self._url)
        assert 0 == done.returncode, done.stderr
        return done.stdout

    def told(self, *words: str) -> str:
        """Run a command that is refused and return the one line that it said."""
        done = self._command_line.run("runtime", *words, *self._url)
        assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n")), done
        return done.stderr.removeprefix("agentdouble: ").rstrip("\n")

    def read(self, *words: str) -> Any:
        return json.loads(self.lines(*words, "--json"))


@pytest.fixture
def commands(command_line: CommandLine, double: Emulator) -> Commands:
    return Commands(command_line, double)


def says(double: Emulator, key: str, name: str = "made") -> str:
    headers = {"Authorization": f"Bearer {key}"}
    return http.get(f"{double.url}/runtimes/{name}/", headers=headers).text


def test_a_runtime_is_made_and_called_with_its_key(commands: Commands, double: Emulator) -> None:
    """Its address for people, its key where it is asked for, and nowhere else."""
    address = commands.lines("create", "made", "--command", COMMAND, "--env", "SAYS=a=b")
    key = commands.lines("show", "made", "--key").strip()
    table = commands.lines("list")
    shown = commands.lines("show", "made")

    assert f"{double.url}/runtimes/made\n" == address
    assert "a=b" == says(double, key)
    (row,) = [line for line in table.splitlines() if "made" in line]
    assert f"{double.url}/runtimes/made" in row  # whole, as no terminal is there to fold it for
    assert f"address     {double.url}/runtimes/made\n" in shown
    assert "open to     whoever has its key\n" in shown
    assert key not in table + shown


def test_a_version_is_made_released_and_taken_back(commands: Commands, double: Emulator) -> None:
    """By what is said; the rest stays, the program, too."""
    commands.lines("create", "made", "--command", COMMAND, "--env", "SAYS=1", "--max", "3")
    key = commands.lines("show", "made", "--key").strip()

    waits = commands.lines("update", "made", "--env", "SAYS=2", "--no-release")
    assert "Version 2 waits: agentdouble runtime release made\n" == waits
    assert "1" == says(double, key)
    assert "Version 2 is in force.\n" == commands.lines("release", "made")
    assert "2" == says(double, key)
    assert {"VersionNumber": 3} == commands.read("update", "made", "--idle", "5")
    shown = commands.read("show", "made")
    assert (COMMAND, 3) == (shown["Command"], shown["MaxInstance"])
    assert shown["ArtifactUrl"].endswith("&idle_s=5.0")
    assert "Version 1 is in force.\n" == commands.lines("release", "made", "1")
    assert "1" == says(double, key)
    gone = commands.lines("delete", "made")
    assert f"{shown['RuntimeId']} is deleted.\n" == gone
    assert [] == commands.read("list")


def test_paths_are_seen_from_where_the_command_is_given(
    commands: Commands, command_line: CommandLine
) -> None:
    """An application in a file runs in its folder; an interpreter's link is left as it is."""
    sources = command_line.folder
    (sources / "inner").mkdir()
    (sources / "inner" / "app.py").touch()
    (sources / "python").symlink_to(sys.executable)

    commands.lines("create", "made", "inner/app.py:app", "--python", "python")
    first = commands.read("show", "made")["ArtifactUrl"]
    commands.lines("update", "made", "other:app", "--directory", ".", "--no-release")
    second = commands.read("show", "made")["ArtifactUrl"]
    commands.lines("release", "made")
    third = commands.read("show", "made")["ArtifactUrl"]

    python = f"python={str(sources / 'python').replace('/', '%2F')}"
    assert f"file://{sources}/inner?application=app.py%3Aapp&{python}" == first == second
    assert f"file://{sources}?application=other%3Aapp&{python}" == third


def test_callers_prove_themselves_as_it_is_said(
    commands: Commands, command_line: CommandLine, double: Emulator
) -> None:
    """By a key of one's own, read from the environment, or by an issuer's tokens."""
    command_line.environment["MY_KEY"] = "hunter2"
    commands.lines("create", "keyed", "--command", COMMAND, "--key", "env:MY_KEY")
    issuer = "https://issuer.example/d"
    commands.lines("create", "issued", "saying:app", "--jwt", issuer, "--client", "c")

    assert "nothing" == says(double, "hunter2", "keyed")
    assert {"CustomJwtAuthorizer": {"DiscoveryUrl": issuer, "AllowedClients": ["c"]}} == (
        commands.read("show", "issued")["AuthorizerConfiguration"]
    )
    assert "asks for no key" in commands.told("show", "issued", "--key")


def test_an_instance_that_does_not_start_is_told(commands: Commands) -> None:
    """A runtime that is to have one at once is waited for; the log is pointed to."""
    failing = f"{sys.executable} -S -c 1/0"

    said = commands.told("create", "made", "--command", failing, "--min", "1")

    assert "ZeroDivisionError" in said
    assert 1 == said.count("agentdouble runtime logs made")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "x"), "Say what it runs: MODULE:APP, FILE.py:APP or --command. See --help."),
        (("create", "x", "a:b", "--command", "c"), "Say MODULE:APP or --command, not both."),
        (("create", "x", "a:b", "--env", "A"), "--env takes NAME=VALUE, or the NAME of a"),
        (("create", "x", "a:b", "--key", "k"), "--key takes env:NAME or file:PATH"),
        (("create", "x", "a:b", "--client", "c"), "--client goes with --jwt."),
        (("create", "x", "a:b", "--key", "env:A", "--jwt", "j"), "Say --key or --jwt, not both."),
        (("create", "x", "a:b", "--directory", "/etc"), "the setting runtime_sources names"),
        (("create", "x y", "saying:app"), "InvalidParameter: The parameter Name is invalid: "),
        (("show", "none"), "There is no runtime 'none'. See: agentdouble runtime list"),
        (("delete", "none"), "There is no runtime 'none'. See: agentdouble runtime list"),
    ],
)
def test_what_is_wrong_is_one_line(commands: Commands, words: tuple[str, ...], said: str) -> None:
    """In the words of the command, or the platform's code and message; exit code 2."""
    assert said in commands.told(*words)
