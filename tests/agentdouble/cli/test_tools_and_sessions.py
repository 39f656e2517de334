from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentdouble import environment, running
from agentdouble.environment import Connection
from tests.agentdouble.cli.conftest import CommandLine, Serving

pytestmark = [pytest.mark.libraries, pytest.mark.smoke]


def lines(command_line: CommandLine, *words: str) -> str:
    """Run a command that succeeds and return what it printed."""
    done = command_line.run(*words)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def told(command_line: CommandLine, *words: str) -> str:
    """Run a command that is refused and return the one line that it said."""
    done = command_line.run(*words)
    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    return done.stderr.removeprefix("agentdouble: ").rstrip("\n")


def read(command_line: CommandLine, *words: str) -> Any:
    return json.loads(lines(command_line, *words, "--json"))


def test_tools_are_made_listed_and_deleted(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """Ids for programs, a table for people."""
    command_line = shared_command_line
    made = lines(command_line, "tool", "create", "research", "--env", "A=b=c").strip()
    table = lines(command_line, "tool", "list")
    (listed,) = read(command_line, "tool", "list", "--name", "sear")
    gone = lines(command_line, "tool", "delete", made)
    left = read(command_line, "tool", "list")

    assert re.fullmatch(r"t-[0-9a-f]{20}", made)
    assert made in table
    assert "t-sandbox" in table
    assert ("research", [{"Key": "A", "Value": "b=c"}]) == (listed["Name"], listed["Envs"])
    assert f"{made} is deleted.\n" == gone
    assert ["t-sandbox"] == [tool["ToolId"] for tool in left]


def test_refusals_of_the_platform_are_one_line(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """The platform's code and message, and exit code 2."""
    command_line = shared_command_line
    assert told(command_line, "tool", "delete", "t-none").startswith(
        "InvalidResource.NotFound: There is no tool 't-none'"
    )
    assert "the setting tool_id" in told(command_line, "tool", "delete", "t-sandbox")
    assert "--env takes NAME=VALUE, or the NAME of a variable that there is, not 'A'." == told(
        command_line, "tool", "create", "x", "--env", "A"
    )
    assert "There is no session 'u'. See: agentdouble session list" == told(
        command_line, "session", "show", "u"
    )


@pytest.mark.parametrize(
    "words",
    [("tool", "list"), ("session", "list"), ("attach", "s-1"), ("journal", "-f"), ("reset",)],
)
def test_without_a_double_they_say_how_to_start_one(
    command_line: CommandLine, words: tuple[str, ...]
) -> None:
    """No traceback, no guess at an address."""
    assert "No double is running. Start one: agentdouble serve" == told(command_line, *words)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost", "--url takes an address such as http://host:8000, not 'localhost'."),
        ("ftp://host", "--url takes an address such as http://host:8000, not 'ftp://host'."),
        ("http://h:x", "--url takes an address such as http://host:8000, not 'http://h:x'."),
        ("http://", "--url takes an address such as http://host:8000, not 'http://'."),
        (
            "http://platform.example",
            (
                "No key pair for http://platform.example: it is no running double of yours, and "
                "the environment has no PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY."
            ),
        ),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    command_line: CommandLine, url: str, message: str
) -> None:
    """The message says what is wrong with it."""
    assert message == told(command_line, "tool", "list", "--url", url)


def test_nothing_at_an_address_is_said(command_line: CommandLine) -> None:
    """With keys in the environment the address is tried."""
    command_line.environment |= {
        environment.ACCESS_KEY: "AK",
        environment.SECRET_KEY: "SK",
    }

    message = told(command_line, "tool", "list", "--url", "http://127.0.0.1:9")

    assert message.startswith("Nothing answers at http://127.0.0.1:9 (")
    assert message.endswith("'agentdouble serve' starts one, and --url URL names another.")


def test_another_double_is_named_by_its_url(
    command_line: CommandLine, serve: Callable[..., Serving]
) -> None:
    """Two are running; each is asked for what is its own."""
    first, second = serve(), serve()
    lines(command_line, "tool", "create", "mine", "--url", first.url)

    listed = [
        [tool["Name"] for tool in read(command_line, "tool", "list", "--url", double.url)]
        for double in (first, second)
    ]

    assert [["sandbox", "mine"], ["sandbox"]] == listed


def test_help_teaches_by_example(command_line: CommandLine) -> None:
    """Each command shows how it is used."""
    for words in (("tool", "create"), ("session", "show"), ("session", "resume"), ("attach",)):
        assert f"agentdouble {' '.join(words)} " in lines(command_line, *words, "--help")


def test_what_was_announced_is_what_is_read(
    monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> None:
    """A double is found by the file that it writes, whatever its host is called."""
    monkeypatch.setenv("XDG_STATE_HOME", command_line.environment["XDG_STATE_HOME"])
    with running.announced(Connection("http://127.0.0.1:9", "t-1", "AK", "SK", "r")):
        message = told(command_line, "tool", "list")

    assert message.startswith("Nothing answers at http://127.0.0.1:9 (")


def test_a_double_that_stops_while_it_is_looked_for_is_none(command_line: CommandLine) -> None:
    """Its file may be gone between being listed and being looked at."""
    state = Path(command_line.environment["XDG_STATE_HOME"]) / "agentdouble"
    state.mkdir(parents=True)
    (state / f"running-{os.getpid()}.json").symlink_to("gone")

    assert "No double is running. Start one: agentdouble serve" == told(
        command_line, "tool", "list"
    )


def test_a_double_with_https_is_trusted(
    command_line: CommandLine, serve: Callable[..., Serving]
) -> None:
    """Its certificate is known with its address, by which it can also be named."""
    url = serve("--tls").url

    (found,) = read(command_line, "tool", "list")
    (named,) = read(command_line, "tool", "list", "--url", url)

    assert ("https", "t-sandbox") == (url.partition(":")[0], found["ToolId"])
    assert found == named


def test_a_table_cuts_nothing(shared_command_line: CommandLine, shared_double: Serving) -> None:
    """In eighty columns too: what does not fit goes on in the next line, to be copied."""
    command_line = shared_command_line
    names = [lines(command_line, "tool", "create", f"a-name-of-a-tool-{n}").strip() for n in "12"]

    table = lines(command_line, "tool", "list")

    assert "…" not in table
    assert [True, True] == [name in table for name in names]
    for name in names:
        lines(command_line, "tool", "delete", name)


@pytest.mark.parametrize("group", ["tool", "session"])
def test_the_help_of_a_group_teaches_by_example(command_line: CommandLine, group: str) -> None:
    """As that of each of its commands does."""
    assert f"agentdouble {group} list " in lines(command_line, group, "--help")
