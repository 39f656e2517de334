from __future__ import annotations

import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.asking import ask, asking_table

LIBRARY = "pinnedlib"


def environment(directory: Path, version: str) -> Path:
    """Create a virtual environment with a particular version of a library."""
    venv.create(directory, with_pip=False, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(directory)})
    (Path(packages) / f"{LIBRARY}.py").write_text(f"version = {version!r}\n")
    return directory


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("older") / ".venv", "1.0")


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory, older: Path) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("programs")
    newer = environment(tmp_path_factory.mktemp("newer") / ".venv", "2.0")
    command = "python -m http.server --bind 127.0.0.1 $PORT"
    tables = [
        asking_table("own", directory),
        asking_table("older", directory, python=f"{older}/bin/python"),
        asking_table("newer", directory, python=f"{newer}/bin/python"),
        asking_table("keyed", directory, environment={"OPENAI_API_KEY": "sk-own"}),
        asking_table("dotted", _with_file(directory / "dotted")),
        {"name": "files", "directory": str(directory), "command": command},
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def _with_file(directory: Path) -> Path:
    directory.mkdir()
    (directory / ".env").write_text("GEMINI_API_KEY=own\n")
    return directory


def test_command_may_take_its_port_as_an_argument(double: Emulator) -> None:
    """$PORT needs no shell; the command runs in its directory."""
    assert "asking.py" in http.get(f"{double.url}/runtimes/files/").text


def test_hosted_program_finds_its_double(double: Emulator) -> None:
    """By the variables that run_code reads; the token for the double's own routes is absent."""
    expected = {**double.environment(), "AGENTDOUBLE_TOKEN": None}

    environment = ask(double, "own", f"{{name: os.environ.get(name) for name in {[*expected]!r}}}")

    assert expected == environment


def test_hosted_program_finds_the_model(double: Emulator) -> None:
    """A program with a key of its own, also in a file, gets nothing of that vendor's."""
    names = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY")
    shown = f"[os.environ.get(name) for name in {names!r}]"
    model = [double.environment("model")[name] for name in names]

    assert model == ask(double, "own", shown)
    assert [None, "sk-own", *model[2:]] == ask(double, "keyed", shown)
    assert [*model[:2], None, None] == ask(double, "dotted", shown)


def test_two_versions_of_a_library_run_side_by_side(double: Emulator) -> None:
    """Each in its runtime's virtual environment; the double's own has neither."""
    version = f"__import__({LIBRARY!r}).version"

    assert ["1.0", "2.0", "ModuleNotFoundError"] == [
        ask(double, name, version) for name in ("older", "newer", "own")
    ]


def test_virtual_environment_is_activated(double: Emulator, older: Path) -> None:
    """Its programs come first on PATH, and VIRTUAL_ENV names it."""
    expression = "sys.prefix, os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(os.pathsep)[0]"

    assert [str(older), str(older), f"{older}/bin"] == ask(double, "older", expression)
