"""``agentdouble what-if``: what it prints is what the route answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.cli.conftest import CommandLine


@pytest.fixture
def what_if(double: Emulator, command_line: CommandLine) -> Any:
    """Ask of the last request of a double; return the exit code and what was printed."""
    command_line.environment.update(double.environment())

    def run(*words: str) -> tuple[int, str]:
        entry = str(double.journal.entries()[-1].id)
        done = command_line.run("what-if", entry, *words, "--url", double.url)
        return done.returncode, done.stdout or done.stderr

    return run


def test_what_differs_is_a_table(double: Emulator, what_if: Any) -> None:
    """Or JSON, or a sentence if nothing does."""
    http.get(f"{double.url}/ping")

    table = what_if("U-PROBE-BODIES=json-string")
    document = what_if("U-PROBE-BODIES=json-string", "--json")
    same = what_if("U-LIST-APPS=detailed")

    assert 0 == table[0] == document[0] == same[0]
    assert "┃ Where " in table[1]
    differences = json.loads(document[1])["differences"]
    assert ["body.status", "body"] == [one["path"] for one in differences]
    assert '│ body.status │ "pong!" │ ' in table[1]
    assert "detailed is answered as names, but for ids and times.\n" in same[1]
    assert "did not rely on U-LIST-APPS" in same[1]


@pytest.mark.parametrize(
    ("answer", "says"),
    [("U-PROBE-BODIES", "is no UNKNOWN=ANSWER"), ("U-PROBE-BODIES=x", "has no alternative 'x'")],
)
def test_a_question_that_cannot_be_asked(
    double: Emulator, what_if: Any, answer: str, says: str
) -> None:
    """Is refused in a line."""
    http.get(f"{double.url}/ping")

    code, printed = what_if(answer)

    assert (2, 1) == (code, printed.count("\n"))
    assert says in printed
