"""A double that a command starts, for example with another interpreter and its libraries.

A small process, the guard, is between the command and this process. When its standard input closes,
it ends the whole process group of the command. This process closes that input whenever and however
it ends, so no process stays behind.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO
from urllib.parse import urlsplit

from agentdouble.environment import TOKEN, UNLISTED
from agentdouble.processes.fork_server import signals
from doublecheck.errors import DoubleCheckError, EmulatorCommandError
from doublecheck.target.target import is_loopback

PATIENCE_S = 60.0
END_WITHIN_S = 10.0
_LINES = 20
_LINE_BYTES = 4096
_POLL_S = 0.05
_URL = re.compile(r"https?://(?:\[[0-9a-fA-F:]+\]|[\w.-]+)(?::\d+)?")
_SECRET = re.compile(r"(?i)secret|token|password|api[-_ ]?key")
_GUARD = f"""
import os, signal, subprocess, sys, threading
signal.signal(signal.SIGTERM, lambda *_: None)
try:
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
except OSError as error:
    sys.exit(f"{{sys.argv[1]}}: {{error.strerror}}")
ending = threading.Event()
def end():
    os.read(0, 1)
    ending.set()
    os.killpg(0, signal.SIGTERM)
    try:
        command.wait({END_WITHIN_S})
    finally:
        os.killpg(0, signal.SIGKILL)
thread = threading.Thread(target=end, daemon=True)
thread.start()
code = command.wait()
if ending.is_set():
    thread.join()
os._exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def started(
    command: Sequence[str],
    answers: Callable[[str], bool],
    patience_s: float | None = None,
    *,
    token: str = "",
) -> Iterator[str]:
    """Run a command, wait for the double that it starts, and yield its address; end it after.

    The command prints an address of this machine; ``answers`` returns whether a double answers
    there, or raises a DoubleCheckError. ``token`` becomes that of its own routes. Raises EmulatorCommandError, with the last lines of the
    command, if it ends, prints no address, or no double answers in time.
    """
    if not hasattr(os, "killpg"):
        raise EmulatorCommandError(command, "is not supported on this system", ())
    deadline = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
    process = subprocess.Popen(  # noqa: S603 (the command that the user names)
        [sys.executable, "-I", "-S", "-c", _GUARD, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            UNLISTED: "1",
            **({TOKEN: token} if token else {}),
        },
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        output = _Output(process.stdout)
        url = _address(command, process, output, deadline)
        _await_answer(command, process, output, deadline, lambda: answers(url))
        yield url
    finally:
        _end(process)


def _address(
    command: Sequence[str], process: subprocess.Popen[bytes], output: _Output, deadline: float
) -> str:
    """Return the address that the command prints."""
    output.printed.wait(max(deadline - time.monotonic(), 0))
    if output.url is not None:
        return output.url
    with suppress(subprocess.TimeoutExpired):
        if output.printed.is_set():  # the output of the command has ended
            code = process.wait(END_WITHIN_S)
            what = f"ended with exit code {code} before it printed an address of this machine"
            raise EmulatorCommandError(command, what, output.lines())
    what = "did not print an address of this machine in time, like http://127.0.0.1:8000"
    raise EmulatorCommandError(command, what, output.lines())


def _await_answer(
    command: Sequence[str],
    process: subprocess.Popen[bytes],
    output: _Output,
    deadline: float,
    answers: Callable[[], bool],
) -> None:
    reason = "what answers there is no double"
    while process.poll() is None:
        try:
            if answers():
                return
        except DoubleCheckError as error:
            reason = str(error)
        if time.monotonic() > deadline:
            what = f"printed {output.url}, and no double answers there in time: {reason}"
            raise EmulatorCommandError(command, what, output.lines())
        output.ended.wait(_POLL_S)
    what = f"printed {output.url} and ended with exit code {process.returncode}"
    raise EmulatorCommandError(command, what, output.lines())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the command and its child processes."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(END_WITHIN_S + 5)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(OSError):  # no process of the group is left
            signals.send_to_group(process.pid, signal.SIGKILL)
        process.wait()


class _Output:
    """The output of a command: read continuously, so that it never blocks; stores the last lines.

    ``printed`` is set when an address has been printed, ``ended`` at the end of the output.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.url: str | None = None
        self.printed = threading.Event()
        self.ended = threading.Event()
        self._lines: deque[str] = deque(maxlen=_LINES)
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def lines(self) -> Sequence[str]:
        """Return the last lines, except those that may contain a secret."""
        return [line for line in list(self._lines) if line and not _SECRET.search(line)]

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while content := stream.readline(_LINE_BYTES):
                line = content.decode("utf-8", "replace").rstrip()
                self._lines.append(line)
                self._find(line)
        self.printed.set()
        self.ended.set()

    def _find(self, line: str) -> None:
        if self.url is None:
            self.url = next(filter(None, map(_loopback_url, _URL.findall(line))), None)
        if self.url is not None:
            self.printed.set()


def _loopback_url(url: str) -> str | None:
    """Return the loopback URL of an address on this machine, or None for other machines."""
    if urlsplit(url).hostname == "0.0.0.0":  # noqa: S104 (what it prints, not what we bind)
        url = url.replace("0.0.0.0", "127.0.0.1", 1)  # noqa: S104
    return url if is_loopback(url) else None
