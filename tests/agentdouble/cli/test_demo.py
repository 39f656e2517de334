from __future__ import annotations

import signal
import subprocess

import psutil
import pytest

from agentdouble.cli import demo
from tests.agentdouble.cli.conftest import CommandLine

pytestmark = pytest.mark.once


def test_every_step_of_the_demo_comes_out_as_stated(command_line: CommandLine) -> None:
    """The transcript shows each step, marks none as wrong, and the exit code is 0.

    A pipe gets plain text, without colours.
    """
    done = command_line.run("demo")

    assert (0, "") == (done.returncode, done.stderr)
    for shown in (
        "    42\n",
        "    [0, 1, 4, 9, 16]\n",
        "    30\n",
        "NameError: name 'squares' is not defined",
        "return cake / guests",
        "PNG image, ",
        "2 sessions were alive; none is, and their processes are gone",
        "the session was destroyed: its state is gone",
        "All 8 steps came out as stated",
        "prints the address of a web console",
    ):
        assert shown in done.stdout
    assert "not so" not in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_a_step_that_does_not_come_out_as_stated_fails_the_demo(monkeypatch, capsys) -> None:
    """A wrong answer is marked, and the exit code is 1."""
    wrong = demo.Turn("A result", "s1", "6 * 7", "the code really ran", lambda answer: False)
    monkeypatch.setattr(demo, "BEFORE", (wrong,))

    code = demo.run()

    assert code == 1
    assert "not so" in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_left_when_the_demo_is_killed_in_the_middle(command_line: CommandLine) -> None:
    """Soon after a SIGKILL no kernel process is left."""
    process, kernels = _in_the_middle(command_line)

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert kernels
    _, alive = psutil.wait_procs(kernels, timeout=60)
    assert alive == []


def _in_the_middle(
    command_line: CommandLine,
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Start the demo and return it with its kernels; another, if it was over before the look."""
    for _ in range(20):
        process = command_line.start("demo")
        assert process.stdout is not None
        for line in process.stdout:
            if "the next turn remembers" in line:
                break
        kernels = psutil.Process(process.pid).children(recursive=True)
        if kernels:
            break
        process.communicate()
    return process, kernels
