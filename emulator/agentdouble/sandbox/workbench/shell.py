"""``/v1/shell/exec``: commands in shells on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import secrets
import struct
import termios
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator
from starlette.routing import Route

from agentdouble.sandbox.workbench.bash import Name, Seconds, Text
from agentdouble.sandbox.workbench.bash_session import BashSession, Command
from agentdouble.sandbox.workbench.keeper import BashSessions
from agentdouble.sandbox.workbench.output import shorten
from agentdouble.sandbox.workbench.paths import Paths
from agentdouble.sandbox.workbench.wire import Answer, RequestBody, cancellable

_SHOWN_WITHIN_S = 1.0
_SIZE = struct.pack("HHHH", 24, 80, 0, 0)  # rows, columns
_OPOST = 1  # tcgetattr's index of the flags for output


class ShellSession(BashSession):
    """A bash session on a terminal: all its output is in ``stdout``, none in ``stderr``."""

    def __init__(self, session_id: str, directory: str, shown: Callable[[str], str]) -> None:
        super().__init__(session_id, directory, shown)
        self._mark = f"\x1e{secrets.token_hex(8)}\x1e"
        self._marks = 0
        self._unmarked = b""

    @property
    def prompt(self) -> str:
        """The prompt before a command."""
        return f"gem@agentdouble:{self.working_dir} $"

    def _open(self) -> tuple[dict[str, int], dict[str, int]]:
        commands, results, (master, slave) = os.pipe(), os.pipe(), pty.openpty()
        flags = termios.tcgetattr(slave)
        flags[_OPOST] &= ~termios.OPOST  # a line ends as the command ended it
        termios.tcsetattr(slave, termios.TCSANOW, flags)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, _SIZE)
        ours = {"commands": commands[1], "results": results[0], "stdout": master}
        ours["stdin"] = os.dup(master)
        theirs = {"commands": commands[0], "results": results[1], "stdin": slave}
        return ours, {**theirs, "stdout": os.dup(slave), "stderr": os.dup(slave)}

    def _take(self, name: str, data: bytes) -> None:
        if name != "stdout":
            super()._take(name, data)
            return
        mark = self._mark.encode()
        *parts, rest = (self._unmarked + data).split(mark)
        for part in parts:
            self._marks += 1
            self.stdout.append(part)
        kept = _beginning_of(mark, rest)
        self.stdout.append(rest[: len(rest) - kept])
        self._unmarked = rest[len(rest) - kept :]

    async def _all_shown(self) -> None:
        """Wait until the mark after the command's output has arrived, or the bash has ended."""
        deadline = asyncio.get_running_loop().time() + _SHOWN_WITHIN_S
        while not self._marks and not self.closed:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                break
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.stdout.changed(), left)
        self._marks = 0


def _beginning_of(mark: bytes, data: bytes) -> int:
    """Return the number of bytes at the end of the data that may be the beginning of a mark."""
    for length in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:length]):
            return length
    return 0


SHOWN_CHARS = 30_000
_STATUS = {
    "pending": "running",
    "running": "running",
    "completed": "completed",
    "timed_out": "hard_timeout",
    "killed": "terminated",
}

# The platform's own client sends "" for a new shell, and for no directory.
_Absent = BeforeValidator(lambda text: None if text == "" else text)
OptionalName = Annotated[Name | None, _Absent]
OptionalText = Annotated[Text | None, _Absent]


class Exec(RequestBody):
    """A command; ``hard_timeout`` ends it, ``timeout`` and ``no_change_timeout`` end the wait."""

    id: OptionalName = None
    exec_dir: OptionalText = None
    command: Text
    async_mode: bool = False
    timeout: Seconds | None = None
    strict: bool | None = None
    no_change_timeout: Seconds | None = None
    hard_timeout: Seconds | None = None
    truncate: bool = True


class Shell:
    """The shells of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._sessions = BashSessions("shell", ShellSession, paths, memory_limit)

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/shell``."""
        return [
            cancellable("/v1/shell/exec", Exec, self.exec),
        ]

    async def exec(self, body: Exec) -> Answer:
        """Run a command and return the terminal's output; wait as long as the body says."""
        directory = self._sessions.directory(body.exec_dir, strict=bool(body.strict))
        session = await self._sessions.get_or_make(body.id, directory)
        command = Command(body.command, {}, directory, body.hard_timeout)
        prompt = session.prompt
        session.run(command)
        with session.interrupting(command):
            changing = body.async_mode or await _settled(
                session, command, body.timeout, body.no_change_timeout
            )
        status = _STATUS[command.status] if changing else "no_change_timeout"
        output, _ = session.stdout.read(command.begins[0], command.ends[0])
        output = shorten(output, SHOWN_CHARS if body.truncate else 0)
        record = {"ps1": prompt, "command": command.text, "output": output}
        data = {
            "session_id": session.id,
            "command": command.text,
            "status": status,
            "output": output,
            "console": [record],
            "exit_code": command.exit_code,
        }
        return Answer(data, f"Command {status}")


async def _settled(
    session: ShellSession, command: Command, timeout_s: float | None, still_s: float | None
) -> bool:
    """Wait for a command, at most ``timeout_s``.

    Return False if there was no new output for ``still_s``, else True.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while not command.done.is_set():
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            break
        patience = min((s for s in (left, still_s) if s is not None), default=None)
        changed = asyncio.ensure_future(session.stdout.changed())
        done = asyncio.ensure_future(command.done.wait())
        try:
            news, _ = await asyncio.wait(
                {changed, done}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
            done.cancel()
        if not news and patience == still_s and not command.done.is_set():
            return False
    return True
