from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from agentdouble.cli.control import ControlPlaneClient
from agentdouble.core.environment import DoubleConnection
from agentdouble.errors import PlatformError
from tests.agentdouble.calling import http
from tests.agentdouble.cli.conftest import PATIENCE_S, CommandLine, Serving, command

pytestmark = pytest.mark.once


@dataclass
class Living:
    """A session of a served double."""

    plane: ControlPlaneClient
    id: str

    def run(self, code: str) -> str:
        payload = json.dumps({"code": code})
        body = {"ToolId": self.plane.tool_id, "SessionId": self.id}
        answer = self.plane.call(
            "InvokeTool", **body, OperationType="RunCode", OperationPayload=payload
        )
        outputs = json.loads(answer["Result"])["data"]["outputs"]
        return "".join(output["text"] or "" for output in outputs)


@pytest.fixture
def command_line(shared_command_line: CommandLine) -> CommandLine:
    return shared_command_line


@pytest.fixture(scope="module")
def plane(shared_command_line: CommandLine, shared_double: Serving) -> ControlPlaneClient:
    variables = json.loads(shared_command_line.run("env", "--json").stdout)
    keys = (variables["PLATFORM_ACCESS_KEY"], variables["PLATFORM_SECRET_KEY"])
    tool_id = variables["PLATFORM_TOOL_ID"]
    return ControlPlaneClient(DoubleConnection(shared_double.url, tool_id, *keys, "cn-beijing"))


@pytest.fixture
def session(plane: ControlPlaneClient) -> Iterator[Living]:
    """The only session of the running double, ``u``, with x = 41 in it."""
    session = plane.call("CreateSession", ToolId=plane.tool_id, UserSessionId="u")
    living = Living(plane, session["SessionId"])
    living.run("x = 41")
    yield living
    with contextlib.suppress(PlatformError):  # a test has ended it
        plane.call("DeleteSession", SessionId=living.id)


def piped(command_line: CommandLine, code: str, *words: str) -> tuple[int, str, str]:
    done = command_line.run("session", "attach", *words, typed=code)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_piped_input_is_one_cell(command_line: CommandLine, session: Living) -> None:
    """By either id, in the session's own context; stdout and stderr are separate."""
    code = "import sys\n\ndef f(n):\n    return n + x\n\nprint(f(1), file=sys.stderr)\nf(2)\n"

    first = command_line.in_its_own_python("session", "attach", "u", typed=code)

    assert (0, "Out[2]: 43\n", "42\n") == (first.returncode, first.stdout, first.stderr)
    assert (0, "42\n", "") == piped(command_line, "print(f(1))", session.id)
    assert (0, "", "") == piped(command_line, "\n", session.id)


def test_failing_code_is_exit_code_one(command_line: CommandLine, session: Living) -> None:
    """The traceback is on stderr, without colours in a pipe."""
    returncode, stdout, stderr = piped(command_line, "1 / 0", "u")

    assert (1, "") == (returncode, stdout)
    assert stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "\x1b" not in stderr


def test_ended_session_is_refused(command_line: CommandLine, session: Living) -> None:
    """Attaching creates nothing, and deleting reports its result."""
    destroyed = command_line.run("session", "delete", "u")

    assert f"{session.id} is deleted.\n" == destroyed.stdout
    returncode, stdout, stderr = piped(command_line, "1", session.id)
    assert (2, "") == (returncode, stdout)
    assert f"No living session {session.id!r}." in stderr
    assert "[]" == command_line.run("session", "list", "--json").stdout.strip()


def test_sessions_are_listed(command_line: CommandLine, session: Living) -> None:
    """As a table, and as JSON for programs."""
    (listed,) = json.loads(command_line.run("session", "list", "--json").stdout)
    table = command_line.run("session", "list").stdout

    assert (session.id, "u", "t-sandbox") == tuple(
        listed[key] for key in ("SessionId", "UserSessionId", "ToolId")
    )
    assert session.id in table


def test_a_sleeping_session_is_named_with_the_command_that_wakes_it(
    command_line: CommandLine, session: Living
) -> None:
    command_line.run("clock", "advance", "31m")

    listed = command_line.run("session", "list").stdout
    words = listed.partition("agentdouble call ")[2].split()
    command_line.run("call", *words)

    assert f"expired last, {session.id}:" in listed
    assert session.id in command_line.run("session", "list", "--json").stdout


class Terminal:
    """A program on a new terminal."""

    def __init__(self, command_line: CommandLine, *words: str) -> None:
        self._ours, terminal = pty.openpty()
        self.process = subprocess.Popen(
            command(words),
            cwd=command_line.folder,
            env={**command_line.environment, "TERM": "dumb", "INPUTRC": "/dev/null"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, pattern: str) -> str:
        """Return the program's output up to this pattern."""
        while (match := re.search(pattern, self._seen)) is None:
            if not select.select([self._ours], [], [], PATIENCE_S)[0]:
                pytest.fail(f"{pattern!r} does not come: {self._seen!r}")
            self._seen += os.read(self._ours, 4096).decode()
        output, self._seen = self._seen[: match.end()], self._seen[match.end() :]
        return output

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(command_line: CommandLine) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*words: str) -> Terminal:
        opened.append(Terminal(command_line, *words))
        return opened[-1]

    yield open_terminal
    for opened_item in opened:
        opened_item.close()


@pytest.mark.slow
def test_console_runs_cell_by_cell(terminal: Callable[..., Terminal], session: Living) -> None:
    """Prompts continue the session's numbering; an empty line ends a block."""
    console = terminal("session", "attach", "u")

    console.until(r"In \[2\]: ")
    console.type("x + 1\n")
    assert "Out[2]: 42" in console.until(r"In \[3\]: ")
    console.type("for n in range(2):\n")
    console.until(r"   \.\.\.: ")
    console.type("    print('n', n)\n\n")
    assert "n 0\r\nn 1" in console.until(r"In \[4\]: ")
    console.type("1 / 0\n")
    assert "ZeroDivisionError" in console.until(r"In \[5\]: ")
    console.type("y = 7\n")
    console.until(r"In \[6\]: ")
    console.type("\x04")

    assert 0 == console.process.wait(PATIENCE_S)
    assert "7\n" == session.run("print(y)")


@pytest.mark.slow
def test_ctrl_c_interrupts_the_code_and_not_the_session(
    terminal: Callable[..., Terminal], session: Living
) -> None:
    """The code is interrupted, the console continues, and the context is kept."""
    session.run("import os; os.mkfifo('begun')")
    console = terminal("session", "attach", "u")
    home = next(
        session["home"]
        for session in http.get(f"{session.plane.url}/_emulator/sessions").json()["sessions"]
    )

    console.until(r"In \[3\]: ")
    console.type("import time\n")
    console.until(r"In \[4\]: ")
    console.type("open('begun', 'w').close(); time.sleep(600)\n")
    with open(os.path.join(home, "begun")):  # noqa: PTH118, PTH123
        pass
    console.process.send_signal(signal.SIGINT)

    console.until("KeyboardInterrupt")
    console.until(r"In \[5\]: ")
    console.type("print(x)\n")
    assert "41" in console.until(r"In \[6\]: ")
