"""The double's side of the fork server: start it, ask for forks, hear how they end."""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import Literal

from agentdouble.processes.fork_server.protocol import (
    MAX_DATAGRAM,
    Exited,
    Forked,
    ForkRequest,
    Refused,
    ancillary,
    decode,
    encode,
)

# Nothing secret: a fork's /proc/self/environ shows what the fork server was started with.
_INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "MPLBACKEND"),
    *("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"),  # without them it may find no modules
)


class ForkServerGoneError(Exception):
    """The fork server has ended, and its kernels with it."""


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
        return self.exited.done() or bool(select.select([self._pidfd], [], [], 0)[0])

    async def end(self) -> None:
        """Kill the process; return when it is gone with all that it has started."""
        self.send_signal(signal.SIGKILL)
        await asyncio.wait({self.exited})

    def ended(self, code: int | None) -> None:
        """Note that the process has ended; the code is None when nobody knows it."""
        if not self.exited.done():
            self.exited.set_result(code)
            os.close(self._pidfd)


class ForkServer:
    """A running fork server; belongs to the loop that started it.

    One for "commands" has nothing of Jupyter's in memory: it is there sooner, and smaller.
    """

    def __init__(
        self, preload: Sequence[str] = (), kind: Literal["kernels", "commands"] = "kernels"
    ) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(  # noqa: S603 (our own module)
                [
                    sys.executable,
                    "-m",
                    "agentdouble.processes.fork_server.server",
                    str(there.fileno()),
                    kind,
                    *preload,
                ],
                pass_fds=[there.fileno()],
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        here.setblocking(False)
        self._channel = here
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(here, self._on_readable)
        self._asked: deque[asyncio.Future[ForkedProcess]] = deque()
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._living: dict[int, ForkedProcess] = {}
        self.gone = self._loop.create_future()

    @property
    def pid(self) -> int:
        """The process below which all its kernels run."""
        return self._process.pid

    async def fork(self, request: ForkRequest, *descriptors: int) -> ForkedProcess:
        """Fork a kernel, with copies of ``descriptors``.

        Raises ForkServerGoneError if the server has ended, OSError if it refuses.
        """
        if self.gone.done():
            raise ForkServerGoneError
        answer: asyncio.Future[ForkedProcess] = self._loop.create_future()
        self._asked.append(answer)
        copies = tuple(os.dup(descriptor) for descriptor in descriptors)  # the caller may go away
        self._unsent.append((encode(request), copies))
        self._send()
        return await answer  # if it is cancelled, its fork is killed

    async def stop(self) -> None:
        """End the server and all its kernels; return when they are gone."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        await asyncio.shield(self.gone)

    def _send(self) -> None:
        """Send what the channel takes now, and the rest when it takes more."""
        self._loop.remove_writer(self._channel)
        while self._unsent:
            datagram, descriptors = self._unsent[0]
            try:
                self._channel.sendmsg([datagram], ancillary(descriptors))
            except BlockingIOError:  # dozens at once fill it while the server still imports
                self._loop.add_writer(self._channel, self._send)
                return
            except (BrokenPipeError, ConnectionResetError):  # the reader will hear of that, too
                return
            self._forget_sent()

    def _forget_sent(self) -> None:
        _, descriptors = self._unsent.popleft()
        for descriptor in descriptors:
            os.close(descriptor)

    def _on_readable(self) -> None:
        try:
            datagram, sent, _, _ = self._channel.recvmsg(MAX_DATAGRAM, socket.CMSG_SPACE(4))
        except ConnectionResetError:
            datagram, sent = b"", []
        if not datagram:
            self._on_gone()
            return
        match decode(datagram):
            case Forked(pid):
                self._on_forked(pid, array.array("i", sent[0][2])[0])
            case Refused(reason):
                self._refuse(OSError(reason))
            case Exited(pid, code):
                self._living.pop(pid).ended(code)

    def _on_forked(self, pid: int, pidfd: int) -> None:
        process = self._living[pid] = ForkedProcess(pid, pidfd)
        answer = self._asked.popleft()
        if answer.cancelled():
            process.send_signal(signal.SIGKILL)
        else:
            answer.set_result(process)

    def _refuse(self, error: Exception) -> None:
        answer = self._asked.popleft()
        if not answer.done():
            answer.set_exception(error)

    def _on_gone(self) -> None:
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        while self._unsent:
            self._forget_sent()
        while self._asked:
            self._refuse(ForkServerGoneError("the fork server has ended"))
        for process in self._living.values():
            process.ended(None)
        self._living.clear()
        self._process.wait()  # it has closed its end: it is ending
        self.gone.set_result(None)
