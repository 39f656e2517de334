"""A process that is started without a fork server, as on macOS."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from agentdouble.processes.fork_server import processes

_END_PATIENCE_S = 5.0


class SpawnedProcess:
    """A process that leads a session and a process group of its own.

    Nothing adopts the processes that leave the session, so they are found by their parents. One is
    known if it was a descendant when a signal was sent or the end began, even if its parent has
    ended since.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen: set[psutil.Process] = set()
        self.pid = process.pid
        self.exited: asyncio.Future[int | None] = asyncio.ensure_future(self._wait())

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it is alive.

        SIGKILL goes to all descendants, and SIGINT to the process group, as from a terminal.
        """
        self._see_descendants()
        if number == signal.SIGKILL:
            self._kill_rest()
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGINT and not self.has_ended():
                processes.send_to_group(self.pid, number)
            else:
                self._process.send_signal(number)  # nothing, if it has been waited for

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended."""
        return self._process.returncode is not None

    async def end(self) -> None:
        """End the process; close its standard input first, for one that then ends itself."""
        if self._process.stdin is not None:
            self._see_descendants()
            self._process.stdin.close()
            await asyncio.wait({self.exited}, timeout=_END_PATIENCE_S)
        self.send_signal(signal.SIGKILL)
        await asyncio.wait({self.exited})

    async def _wait(self) -> int | None:
        code = await self._process.wait()
        self._kill_rest()
        return code

    def _see_descendants(self) -> None:
        if not self.has_ended():  # afterwards, its pid may be another process's
            with contextlib.suppress(psutil.NoSuchProcess):
                self._seen.update(psutil.Process(self.pid).children(recursive=True))

    def _kill_rest(self) -> None:
        # The group may outlive the process that leads it. Its id goes to no new process meanwhile.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            processes.send_to_group(self.pid, signal.SIGKILL)
        for process in self._seen:  # psutil checks that the pid was not reused
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


async def spawn(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int | None = None,
    pass_fds: Sequence[int] = (),
) -> SpawnedProcess:
    """Start a program with these descriptors as standard streams; raise OSError."""
    return SpawnedProcess(
        await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
        )
    )
