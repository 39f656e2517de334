from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.processes import isolation
from agentdouble.processes.isolation import Isolation
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.launching import InstanceLauncher
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.streams import Process
from tests import machine
from tests.agentdouble.calling import eventually, http

PATIENCE_S = 3  # enough for a program that listens already to be asked amid much else
SAYS_SO = "print('listening', flush=True)\n"
FILES = {
    "imports_nothing_there.py": "import nothing_of_that_name\n",
    "without_app.py": "",
    "elsewhere.py": "import socket, signal\nserver = socket.create_server(('127.0.0.1', 0))\n"
    f"{SAYS_SO}signal.pause()\n",
    "accepts.py": "import os, signal, socket\n"
    "server = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
    f"{SAYS_SO}signal.pause()\n",
    "no_http.py": "import os, socket\n"
    "server = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
    f"{SAYS_SO}while True:\n    one, _ = server.accept()\n    one.recv(999)\n    one.sendall(b'220 hi\\n')\n"
    "    one.close()\n",
    "busy.py": "import http.server, os\n"
    "class Busy(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n        self.send_error(503)\n"
    "server = http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Busy)\n"
    f"{SAYS_SO}server.serve_forever()\n",
}
ENDED = "its process ended with code"
ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "does not import": (
        {"application": "imports_nothing_there:app"},
        f"{ENDED} 1: ModuleNotFoundError: No module named 'nothing_of_that_name'",
    ),
    "no such file": (
        {"application": "not_there.py:app"},
        f"{ENDED} 1: FileNotFoundError: [Errno 2] No such file or directory: '{{directory}}/not_there.py'",
    ),
    "no such program": (
        {"command": "not-there --port $PORT"},
        "its process ended with code 127: program 'not-there' not found",
    ),
    "no program at all": (
        {"command": "./without_app.py"},
        f"{ENDED} 126: cannot execute the program './without_app.py': Permission denied",
    ),
    "ends at once": ({"command": ["sh", "-c", "exit 3"]}, "its process ended with code 3"),
    "is killed": ({"command": ["sh", "-c", "kill -9 $$"]}, "its process ended with signal 9"),
    "too much to execute": (
        {"command": ["true", "x" * 200_000]},
        "its command line and environment are more than 128 KiB",
    ),
}
NEVER_READY = {
    "elsewhere.py": r"it does not listen on \$PORT {port} of 127.0.0.1",
    "accepts.py": "GET /readiness gives no answer",
    "no_http.py": r"GET /readiness is not answered in HTTP \(.+\)",
    "busy.py": "GET /readiness is answered with 503",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    for name, text in FILES.items():
        (directory / name).write_text(text)
    return directory


Launch = Callable[[InstanceLauncher, Definition, int, InstanceLog], Awaitable[Process]]


def when_it_listens(launch: Launch) -> Launch:
    """Start the timeout for programs that never become ready when they listen."""

    async def launched(
        self: InstanceLauncher, definition: Definition, port: int, log: InstanceLog
    ) -> Process:
        process = await launch(self, definition, port, log)
        while definition.name in NEVER_READY and not log.tail(1):  # noqa: ASYNC110 (it is printed)
            await asyncio.sleep(0.01)
        return process

    return launched


@pytest.fixture(scope="module")
def double(directory: Path) -> Iterator[Emulator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InstanceLauncher, "launch", when_it_listens(InstanceLauncher.launch))
        with Emulator() as double:
            yield double


def start(double: Emulator, directory: Path, **fields: Any) -> httpx.Response:
    """Send a request to a new runtime and return the answer."""
    double.runtimes.create("bad", directory=directory, **fields)
    try:
        return http.get(f"{double.url}/runtimes/bad/")
    finally:
        double.runtimes.delete("bad")


def reason(answer: httpx.Response, name: str = "bad") -> str:
    """Return the reason of a failed start; the error also says where the log is."""
    assert 502 == answer.status_code
    message = answer.json()["error"]["message"]
    match = re.fullmatch(
        rf"The runtime '{name}' did not start: (.*)\. "
        rf"What it printed: /_emulator/runtimes/{name}/logs",
        message,
        re.DOTALL,
    )
    assert match, message
    return match[1]


@pytest.mark.parametrize("case", ENDS)
def test_program_that_exits_early_is_reported(double: Emulator, directory: Path, case: str) -> None:
    """At once, with its exit code and its last line, such as a traceback's error."""
    fields, expected = ENDS[case]

    answer = start(double, directory, **fields)

    assert expected.replace("{directory}", str(directory)) == reason(answer)


@pytest.mark.needs("user")
@pytest.mark.parametrize("closed", ["", "app"])
def test_a_directory_that_other_users_cannot_reach_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    """Without namespaces, as in most containers, the runtime's own user has to pass it."""
    offered = dict(isolation.find_out().measures)
    offered["files"] = replace(offered["files"], why_not="EPERM")
    monkeypatch.setattr(isolation, "find_out", lambda: Isolation(offered))
    program = machine.open_to_others(tmp_path) / "app"
    program.mkdir(mode=0o755)
    (tmp_path / closed).chmod(0o700)
    change = "-R o+rX" if closed else "o+x"

    with Emulator() as double:
        answer = start(double, program, command="python program.py")

    assert (
        f"{tmp_path / closed} is closed to other users, and the runtime would be one: "
        f"open it (chmod {change} {tmp_path / closed}), or set isolation = 'none'"
    ) == reason(answer)


@pytest.fixture(scope="module")
def given_up(double: Emulator, directory: Path) -> dict[str, httpx.Response]:
    """Return the errors of programs that are never ready, started concurrently."""
    for program in NEVER_READY:
        command = f"python -S {program}"
        double.runtimes.create(
            program, directory=directory, command=command, start_timeout_s=PATIENCE_S
        )
    with ThreadPoolExecutor() as pool:
        urls = [double.runtimes.address(program) for program in NEVER_READY]
        return dict(zip(NEVER_READY, pool.map(http.get, urls), strict=True))


@pytest.mark.parametrize("program", NEVER_READY)
def test_program_that_is_never_ready_times_out(
    double: Emulator, given_up: dict[str, httpx.Response], program: str
) -> None:
    """After start_timeout_s, with what it did instead; the log says so too."""
    message = reason(given_up[program], program)

    expected = NEVER_READY[program].replace("{port}", r"\d+")
    pattern = rf"it was not ready after {PATIENCE_S} s, its start_timeout_s: {expected}"
    assert re.fullmatch(pattern, message), message
    assert any(message in line for line in double.runtimes.logs(program))


def test_failed_start_without_a_caller_is_logged(
    double: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    """No answer reports a minimum instance that failed to start."""
    double.runtimes.create("unheard", command="no-such-program", min_instances=1)

    eventually(lambda: caplog.text, lambda text: "program 'no-such-program' not found" in text)

    double.runtimes.delete("unheard")
    assert "The runtime 'unheard' did not start: " in caplog.text
