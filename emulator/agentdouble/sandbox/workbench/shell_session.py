"""One shell session: a bash on a terminal, with the output that the terminal shows."""

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

from agentdouble.sandbox.workbench.bash_session import BashSession

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
