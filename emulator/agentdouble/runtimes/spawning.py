"""An instance without a fork server, where there is none: a session of its own, not confined.

Its tree ends with the double where the double ends it. A double that is killed leaves it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil


class SpawnedTree:
    """A process of a session of its own; what has left it is known if it was there at the end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen: set[psutil.Process] = set()
        self.pid = process.pid
        self.exited: asyncio.Future[int | None] = asyncio.ensure_future(self._wait())

    def send_signal(self, number: int) -> None:
        """Send a signal to the first process, SIGKILL to all."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._seen.update(psutil.Process(self.pid).children(recursive=True))
        if number == signal.SIGKILL:
            self._kill_rest()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _wait(self) -> int | None:
        code = await self._process.wait()
        self._kill_rest()
        return code

    def _kill_rest(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in self._seen:  # psutil sees to it that no pid is another's by now
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


async def spawn(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], outputs: Sequence[int]
) -> SpawnedTree:
    """Start a command with two descriptors for what it prints; raise OSError."""
    return SpawnedTree(
        await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
        )
    )
