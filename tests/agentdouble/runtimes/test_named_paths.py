"""Commands that begin with an interpreter, and paths in commands that isolation hides."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.asking import ask, asking
from tests.agentdouble.runtimes.test_interpreters import Environment, make_environment

NUMBERS = itertools.count()
LIBRARY = "__import__('pinnedlib').version"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


@pytest.fixture
def elsewhere(tmp_path: Path) -> Environment:
    return make_environment(tmp_path / "elsewhere" / ".venv", "1.0")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    return tmp_path / "app"


def created(double: Emulator, directory: Path, **fields: Any) -> str:
    """Make a new runtime and return its name."""
    name = f"named-{next(NUMBERS)}"
    double.runtimes.create(**asking(name, directory, **fields))
    return name


def why_not(double: Emulator, directory: Path, **fields: Any) -> str:
    answer = http.get(f"{double.url}/runtimes/{created(double, directory, **fields)}/")
    assert 502 == answer.status_code
    return str(answer.json()["error"]["message"])


def test_an_interpreter_in_the_command_brings_its_environment(
    double: Emulator, directory: Path, elsewhere: Environment
) -> None:
    """As with the key python: its libraries, VIRTUAL_ENV, and PATH."""
    name = created(double, directory, command=[str(elsewhere.python), "asking.py"])

    seen = "sys.prefix, os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(os.pathsep)[0]"
    place = str(elsewhere.directory)
    assert "1.0" == ask(double, name, LIBRARY)
    assert [place, place, f"{place}/bin"] == ask(double, name, seen)


def test_an_interpreter_may_be_named_from_the_directory(double: Emulator, directory: Path) -> None:
    """A relative path is one from the runtime's directory, not from the double's."""
    make_environment(directory / ".venv", "2.0")

    name = created(double, directory, command=".venv/bin/python asking.py")

    assert "2.0" == ask(double, name, LIBRARY)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")
@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME"])
def test_a_variable_shows_nothing_more(
    double: Emulator, directory: Path, elsewhere: Environment, tmp_path: Path, name: str
) -> None:
    """A client of the control plane sets variables, and may not see what is outside the sources."""
    (tmp_path / "outside").mkdir()

    message = why_not(
        double,
        directory,
        command=[str(elsewhere.python), "-E", "-c", f"import os; os.listdir(os.environ[{name!r}])"],
        environment={name: str(tmp_path / "outside")},
    )

    assert (
        f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/outside'" in message
    )


def test_a_name_is_looked_up_on_path(double: Emulator, directory: Path) -> None:
    """The double's own interpreter comes first, as before."""
    assert sys.prefix == ask(double, created(double, directory), "sys.prefix")


def test_an_interpreter_that_does_not_exist_is_named(double: Emulator, directory: Path) -> None:
    """There is nothing to show, so no setting is named."""
    message = why_not(double, directory, command="/nowhere/bin/python asking.py")

    assert "code 127: there is no program '/nowhere/bin/python'. What" in message


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")
@pytest.mark.parametrize("kind", ["in a shell", "of a script", "on PATH", "after env"])
def test_an_interpreter_that_is_hidden_is_named(
    double: Emulator, directory: Path, elsewhere: Environment, kind: str
) -> None:
    """The error says which path is hidden, and which setting shows it."""
    (directory / "needs.py").write_text("import pinnedlib\n")
    script = directory / "start"
    script.write_text(f"#!{elsewhere.python}\n")
    script.chmod(0o755)
    python = str(elsewhere.python)
    fields: dict[str, dict[str, Any]] = {
        "in a shell": {"command": ["sh", "-c", f"exec {python} asking.py"]},
        "of a script": {"command": "./start"},
        "on PATH": {
            "command": "python9 needs.py",
            "environment": {"PATH": str(elsewhere.python.parent)},
        },
        "after env": {"command": ["env", python, "asking.py"], "python": sys.executable},
    }
    (elsewhere.python.parent / "python9").symlink_to(python)
    hidden = str(elsewhere.python.parent) if kind == "on PATH" else python

    message = why_not(double, directory, **fields[kind])

    assert (
        f"; isolation does not show {hidden}, which its command names: list what it needs"
        in message
    )
    assert "visible_paths, or name an interpreter with the runtime's key python" in message
