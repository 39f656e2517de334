"""The double's channel to a template, which forks copies of a living kernel."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket

from agentdouble.processes.fork_server.client import ForkChannel, ForkedProcess
from agentdouble.processes.fork_server.processes import pid_of

_PATIENCE_S = 20.0  # how long to wait for a template that does not report


class Template(ForkChannel):
    """A template of a living kernel, which forks copies of it; ``process`` is its own."""

    process: ForkedProcess

    @classmethod
    async def accepted(cls, listening: socket.socket) -> Template:
        """Return the template that connects to a socket.

        Raises ForkServerGoneError if it ends at once.
        """
        loop = asyncio.get_running_loop()
        # Other code of the session may have connected. Its pid shows that; see ``kernel_snapshot``.
        channel, _ = await loop.sock_accept(listening)
        template = cls(channel)
        try:
            template.process = await template._introduced
        except BaseException:
            with contextlib.suppress(OSError):  # so that the template ends, if it lives
                channel.shutdown(socket.SHUT_WR)
            raise
        return template

    def __init__(self, channel: socket.socket) -> None:
        super().__init__(channel)
        self._unwanted = False
        self._reports = 0
        self._kept: set[ForkedProcess] = set()
        self._introduced = self._asked[0] = self._loop.create_future()

    def keep_template(self, template: ForkedProcess, home: str) -> None:
        """Let a template of a copy outlive the copy; this template lives as long."""
        super().keep_template(template, home)
        self._kept.add(template)
        template.exited.add_done_callback(lambda _: self._forget(template))

    def _forget(self, template: ForkedProcess) -> None:
        self._kept.discard(template)
        self._end_if_alone()

    def release(self) -> None:
        """End the template when it has no living copies, nor templates of its copies."""
        self._unwanted = True
        self._end_if_alone()

    def hurry(self) -> None:
        """Continue the template if its session's code has stopped it; kill it if it stays silent.

        Otherwise the end of its copies would go unnoticed, and it would live forever.
        """
        self.process.send_signal(signal.SIGCONT)
        self._loop.call_later(_PATIENCE_S, self._kill_if_silent, self._reports)

    def _kill_if_silent(self, reports: int) -> None:
        if self._reports == reports:
            self.process.send_signal(signal.SIGKILL)

    def _on_readable(self) -> None:
        self._reports += 1
        super()._on_readable()
        self._end_if_alone()

    def _own_pid(self, pid: int, pidfd: int) -> int:
        with contextlib.suppress(OSError):  # it has ended
            return pid_of(pidfd)
        return pid

    def _end_if_alone(self) -> None:
        # The template itself counts as living.
        alone = len(self._living) == 1 and not self._asked and not self._kept
        if self._unwanted and alone and not self.gone.done():
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
            self.hurry()
