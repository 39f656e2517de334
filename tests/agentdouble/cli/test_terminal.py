"""Output in pipes and on terminals, with and without NO_COLOR (https://no-color.org)."""

from __future__ import annotations

import os
import pty
import re
import subprocess

import pytest

from agentdouble.core import terminal
from tests.agentdouble.cli.conftest import PATIENCE_S, CommandLine, Serving, command

pytestmark = pytest.mark.once

BOX = re.compile("[\u2500-\u257f]")
ESCAPE = "\x1b["
DOUBLECHECK = "from doublecheck.cli import main; main()"


def on_a_terminal(command_line: CommandLine, words: list[str], **variables: str) -> str:
    """Run a program on a new terminal of 80 columns, and return what it shows."""
    ours, theirs = pty.openpty()
    known = {k: v for k, v in command_line.environment.items() if k not in ("NO_COLOR", "TERM")}
    environment = {**known, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    process = subprocess.Popen(
        words,
        cwd=command_line.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the end of the last program on the terminal
        pass
    finally:
        os.close(ours)
    assert 0 == process.wait(PATIENCE_S), shown
    return shown.decode()


def test_tables_in_a_pipe_are_lines(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """Nothing is drawn around them, and no line is filled with spaces."""
    run = shared_command_line.run
    run("faults", "arm", "fail", "InvokeTool", "nth=99")
    run("call", "CreateSession", "ToolId=t-sandbox", "UserSessionId=u")
    tables = [run(*words).stdout for words in (("faults", "list"), ("session", "list"))]
    tables.append(run("unknowns").stdout)

    assert [] == [it for it in "".join(tables).splitlines() if BOX.search(it) or it != it.rstrip()]
    assert ["Id", "SessionId", "Unknown"] == [table.split()[0] for table in tables]
    assert re.search(r"^f\d+  fail InvokeTool .*  0      0$", tables[0], re.M)
    assert re.search(r"^s-\w{20}  u +t-sandbox +Ready +\d{4}-\S+$", tables[1], re.M)
    assert re.search(r"^U-TTL-EXTENDS +absolute +sliding +client asserts +\w", tables[2], re.M)


def test_values_cannot_draw_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A name is shown as it is: it is neither markup nor a second line."""
    terminal.print_table(("A", "B"), [{"A": "[bold]a[/bold]", "B": "x\n\x1b[31my"}])

    assert ["A               B", "[bold]a[/bold]  x\\n\\x1b[31my"] == (
        capsys.readouterr().out.splitlines()
    )


def test_empty_lists_say_what_that_means(
    shared_command_line: CommandLine, shared_double: Serving
) -> None:
    """On stderr, so that a pipe gets no line for it; JSON is empty."""
    run = shared_command_line.run
    nodes, services = run("nodes", "list"), run("mcp", "list")

    assert ("", "") == (nodes.stdout, services.stdout)
    assert nodes.stderr.startswith("This double runs its sessions itself.")
    assert "agentdouble mcp create" in services.stderr
    assert "[]\n" == run("nodes", "list", "--json").stdout


@pytest.mark.parametrize(("no_color", "styled"), [("1", False), ("0", False), ("", True)])
def test_no_color_stops_styles_and_spinners(
    command_line: CommandLine, no_color: str, styled: bool
) -> None:
    """Any value that is not empty does, in both programs; bold text and spinners are styles, too."""
    shown = {
        name: on_a_terminal(command_line, words, NO_COLOR=no_color)
        for name, words in (
            ("unknowns", command(["unknowns"])),
            ("demo", command(["demo"])),
            ("check", [*command([])[:2], DOUBLECHECK, "run", "-k", "DEC-03"]),
        )
    }

    assert dict.fromkeys(shown, styled) == {name: ESCAPE in it for name, it in shown.items()}


@pytest.mark.parametrize("no_color", ["1", ""])
def test_greeting_heeds_no_color(command_line: CommandLine, no_color: str) -> None:
    script = (
        "import os, signal, sys\n"
        "from agentdouble.cli import main, serving\n"
        "greet = serving._say\n"
        "def say(*words, **options):\n"
        "    greet(*words, **options)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "serving._say = say\n"
        "sys.argv = ['agentdouble', 'serve', '--port', '0']\n"
        "main()"
    )
    shown = on_a_terminal(command_line, [*command([])[:2], script], NO_COLOR=no_color)

    assert (ESCAPE in shown) is not bool(no_color)
    assert "answers. Ctrl-C stops it." in shown
