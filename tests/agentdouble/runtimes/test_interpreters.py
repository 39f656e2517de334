from __future__ import annotations

import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.runtimes.asking import ask, asking

LIBRARY = "pinnedlib"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has a version of a library of its own."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"


def make_environment(directory: Path, version: str) -> Environment:
    venv.create(directory, with_pip=False, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(directory)})
    (Path(packages) / f"{LIBRARY}.py").write_text(f"version = {version!r}\n")
    return Environment(directory)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return make_environment(tmp_path_factory.mktemp("older") / ".venv", "1.0")


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory, older: Environment) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("programs")
    newer = make_environment(tmp_path_factory.mktemp("newer") / ".venv", "2.0")
    (directory / "asgi.py").write_text("async def app(scope, receive, send):\n    pass\n")
    tables = [
        asking("older", directory, python=str(older.python)),
        asking("newer", directory, python=str(newer.python)),
        asking("own", directory),
        {
            "name": "unserved",
            "directory": str(directory),
            "application": "asgi:app",
            "python": str(older.python),
        },
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def test_two_versions_of_a_library_run_side_by_side(double: Emulator) -> None:
    """Each from the virtual environment that its runtime names; the double's own has neither."""
    version = f"__import__({LIBRARY!r}).version"

    assert ["1.0", "2.0", "ModuleNotFoundError"] == [
        ask(double, name, version) for name in ("older", "newer", "own")
    ]


def test_an_environment_is_as_if_it_were_activated(double: Emulator, older: Environment) -> None:
    """Its programs come first on PATH, and VIRTUAL_ENV names it."""
    seen = "sys.prefix, os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(os.pathsep)[0]"

    directory = str(older.directory)
    assert [directory, directory, f"{directory}/bin"] == ask(double, "older", seen)
