from __future__ import annotations

import pytest

from tests.agentdouble.cli.conftest import CommandLine

pytestmark = pytest.mark.once


def test_every_step_of_the_demo_succeeds(command_line: CommandLine) -> None:
    """The transcript shows each step, marks none as wrong, and the exit code is 0.

    A pipe gets plain text, without colours.
    """
    done = command_line.run("demo")

    assert (0, "") == (done.returncode, done.stderr)
    for text in (
        "    42\n",
        "    [0, 1, 4, 9, 16]\n",
        "    30\n",
        "NameError: name 'squares' is not defined",
        "return cake / guests",
        "PNG image, ",
        "2 sessions were alive; none is, and their processes are gone",
        "the session was destroyed: its state is gone",
        "All 8 steps gave the expected result",
        "prints the web console's address",
    ):
        assert text in done.stdout
    assert "not so" not in done.stdout
    assert "\x1b" not in done.stdout
