from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.asking import ask, asking_table

VARIABLE = "PLATFORM_TOOL_REGION"


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory = tmp_path_factory.mktemp("programs")
    command = "python -m http.server --bind 127.0.0.1 $PORT"
    tables = [
        asking_table("own", directory),
        asking_table("elsewhere", directory, environment={VARIABLE: "of-its-own", "PATH": "/bin"}),
        {"name": "files", "directory": str(directory), "command": command},
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def test_command_may_take_its_port_as_an_argument(double: Emulator) -> None:
    """$PORT needs no shell; the command runs in its directory."""
    assert "asking.py" in http.get(f"{double.url}/runtimes/files/").text


def test_hosted_program_finds_its_double(double: Emulator) -> None:
    """By the variables that run_code reads; the token for the double's own routes is absent."""
    expected = {**double.environment(), "AGENTDOUBLE_TOKEN": None}

    environment = ask(double, "own", f"{{name: os.environ.get(name) for name in {[*expected]!r}}}")

    assert expected == environment
