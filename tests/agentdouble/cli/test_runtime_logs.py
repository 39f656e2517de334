from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import eventually, http
from tests.agentdouble.cli.conftest import PATIENCE_S, CommandLine

TALKING = Path(__file__).parents[1] / "runtimes" / "applications" / "talking.py"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    table = {"name": "talker", "command": [sys.executable, str(TALKING)]}
    with Emulator(runtimes=[table], api_key="k") as double:
        tell(double, "\\x1b[31mred apple\\x1b[0m\\npear\\u2028pie")
        tell(double, "oh no", to="stderr")
        eventually(lambda: double.runtimes.logs("talker"), lambda lines: "oh no" in lines)
        yield double


def tell(double: Emulator, text: str, to: str = "stdout") -> None:
    code = f"sys.{to}.write('{text}\\n'); sys.{to}.flush()"
    http.post(
        f"{double.url}/runtimes/talker/", content=code, headers={"X-API-Key": "k"}
    ).raise_for_status()


@pytest.fixture
def shell(command_line: CommandLine, double: Emulator) -> CommandLine:
    """Return a command line that knows the double's keys."""
    return CommandLine(command_line.folder, {**command_line.environment, **double.environment()})


def test_lines_are_printed_with_time_and_instance(shell: CommandLine, double: Emulator) -> None:
    """Without colours where nobody sees them; as JSON they are whole."""
    done = shell.run("runtime", "logs", "talker", "--url", double.url)
    read = shell.run("runtime", "logs", "talker", "--url", double.url, "--json", "--search", "pie")

    assert (0, "") == (done.returncode, done.stderr)
    assert ["talker-1 red apple", "talker-1 pear\u2028pie", "talker-1 oh no"] == [
        line.partition(" ")[2] for line in done.stdout.rstrip("\n").split("\n")
    ]
    assert ("stdout", "pear\u2028pie") == tuple(
        json.loads(read.stdout)[key] for key in ("stream", "text")
    )


def test_a_refusal_is_one_line(shell: CommandLine, double: Emulator) -> None:
    """It says what there is, or what is needed."""
    nobody = shell.run("runtime", "logs", "nobody/x", "--url", double.url)
    instance = shell.run("runtime", "logs", "talker", "--url", double.url, "--instance", "x")
    del shell.environment["AGENTDOUBLE_TOKEN"]
    locked = shell.run("runtime", "logs", "talker", "--url", double.url, "-f")

    assert (2, 2, 2) == (nobody.returncode, instance.returncode, locked.returncode)
    assert "agentdouble: There is no runtime 'nobody/x'. There are talker.\n" == nobody.stderr
    assert "there is talker-1" in instance.stderr
    assert locked.stderr.endswith("Put the double's token or API key into AGENTDOUBLE_TOKEN.\n")


def test_lines_are_followed_until_ctrl_c(shell: CommandLine, double: Emulator) -> None:
    """It ends at once, and says nothing."""
    following = shell.start(
        *("runtime", "logs", "talker", "--url", double.url, "-f", "--tail", "1", "--json")
    )
    assert following.stdout is not None
    first = json.loads(following.stdout.readline())
    tell(double, "later")
    second = json.loads(following.stdout.readline())
    following.send_signal(signal.SIGINT)
    rest, errors = following.communicate(timeout=PATIENCE_S)

    assert ("oh no", "later") == (first["text"], second["text"])
    assert (0, "", "") == (following.returncode, rest, errors)
