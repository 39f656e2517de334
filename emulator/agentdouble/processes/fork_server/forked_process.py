"""A process that the fork server has forked, as the double sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal


class ForkedProcess:
    """A kernel's process; signals go to its pidfd, so they cannot hit another process."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._pidfd = pidfd

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process still lives."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def has_ended(self) -> bool:
        """Return whether the process has ended, even if the server has not told of it yet."""
        if self.exited.done():
            return True
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    async def end(self) -> None:
        """Kill the process; return when it is gone with all that it has started."""
        self.send_signal(signal.SIGKILL)
        await asyncio.wait({self.exited})

    def ended(self, code: int | None) -> None:
        """Note that the process has ended; the code is None when nobody knows it."""
        if not self.exited.done():
            self.exited.set_result(code)
            os.close(self._pidfd)
