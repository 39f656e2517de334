"""The double's side of fork servers: starts a server, requests forks and notes their ends.

``copies.template_channel`` has the channel to a template, which is a fork server, too.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentdouble.processes.fork_server.protocol import (
    MAX_DATAGRAM,
    Discard,
    Exited,
    Forked,
    ForkRefused,
    ForkRequest,
    Mount,
    Mounted,
    Retain,
    ancillary,
    decode,
    encode,
)

_SERVER = "agentdouble.processes.fork_server.server"
# No secrets: a fork's /proc/self/environ shows the environment of the fork server.
_INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "MPLBACKEND"),
    *("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"),  # without them it may not find modules
)


_MARK = "agentdouble: "
_TRY = f"""\
import sys
del sys.path[0]  # kernels do not import from the working directory, either
from agentdouble.processes.fork_server.server import preload
failure = preload(sys.argv[1:], kernels=False)
sys.exit(failure and {_MARK!r} + failure)
"""


class ForkServerGoneError(Exception):
    """The fork server and its kernels have ended."""


@dataclass(eq=False)
class _Unsent:
    """A datagram that waits to be sent, with its own copies of descriptors."""

    datagram: bytes
    descriptors: tuple[int, ...] = ()
    number: int = 0  # of the request; 0 if it is not a request

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


class ForkChannel:
    """The double's channel to a process that forks; belongs to a running event loop."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_DATAGRAM)
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._channel, self._on_readable)
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: deque[_Unsent] = deque()
        self._living: dict[int, ForkedProcess] = {}
        self.gone = self._loop.create_future()

    async def fork(self, request: ForkRequest, *descriptors: int) -> ForkedProcess:
        """Fork a kernel, with copies of ``descriptors``.

        Raises ForkServerGoneError if the server has ended, and OSError if it refuses or the request
        cannot be sent. If the caller is cancelled, no kernel remains.
        """
        if self.gone.done():
            raise ForkServerGoneError
        number = next(self._numbers)  # so a failed request affects no other request
        datagram = encode(replace(request, number=number))
        if len(datagram) > MAX_DATAGRAM:
            size = f"its settings and environment are more than {MAX_DATAGRAM // 1024} KiB"
            raise OSError(errno.EMSGSIZE, f"{os.strerror(errno.EMSGSIZE)}: {size}")
        copies = tuple(map(os.dup, descriptors))  # the owner may close the originals
        unsent = _Unsent(datagram, copies, number)
        answer: asyncio.Future[ForkedProcess] = self._ask(unsent)
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(unsent, answer)
            raise

    async def mount_files(self, request: Mount, copy: ForkedProcess) -> None:
        """Mount a copy's own files. Raises ForkServerGoneError, and OSError if mounting fails."""
        if self.gone.done():
            raise ForkServerGoneError
        number = next(self._numbers)
        datagram = encode(replace(request, number=number))
        await self._ask(_Unsent(datagram, copy.copied_pidfd(), number))

    def keep_template(self, template: ForkedProcess, home: str) -> None:
        """Let a template outlive the kernel that forked it."""
        if not self.gone.done():
            self._unsent.append(_Unsent(encode(Retain(home)), template.copied_pidfd()))
            self._send()

    def _ask(self, unsent: _Unsent) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._asked[unsent.number] = answer
        self._unsent.append(unsent)
        self._send()
        self.hurry()
        return answer

    def hurry(self) -> None:
        """Do nothing: a session's code cannot stop a fork server. A template overrides this."""

    def _give_up(self, unsent: _Unsent, answer: asyncio.Future[ForkedProcess]) -> None:
        """Remove an unsent request; otherwise kill its kernel now, or when it has been forked."""
        if unsent in self._unsent:
            self._unsent.remove(unsent)
            self._asked.pop(unsent.number)
            unsent.close()
        elif not answer.cancelled() and answer.exception() is None:  # the answer has just arrived
            answer.result().send_signal(signal.SIGKILL)

    async def stop(self) -> None:
        """End the server and all its kernels; return when they have ended."""
        # The other direction stays open. The server closes it when all its kernels have ended, and
        # until then reports their ends.
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        await asyncio.shield(self.gone)

    def _send(self) -> None:
        """Send as much as the channel accepts now, and the rest when it accepts more."""
        self._loop.remove_writer(self._channel)
        while self._unsent:
            unsent = self._unsent[0]
            try:
                self._channel.sendmsg([unsent.datagram], ancillary(unsent.descriptors))
            # dozens of requests fill the socket while the server still imports
            except BlockingIOError:
                self._loop.add_writer(self._channel, self._send)
                return
            except (BrokenPipeError, ConnectionResetError):  # the reader also notices the break
                return
            except OSError as error:  # this datagram is too large, or has too many descriptors
                self._refuse(unsent.number, error)
            self._unsent.popleft().close()

    def _on_readable(self) -> None:
        try:
            datagram, sent, _, _ = self._channel.recvmsg(MAX_DATAGRAM, socket.CMSG_SPACE(4))
        except ConnectionResetError:
            datagram, sent = b"", []
        if not datagram:
            self._on_gone()
            return
        match decode(datagram):
            case Forked(pid, number) if sent:
                self._on_forked(pid, number, array.array("i", sent[0][2])[0])
            # Linux drops the pidfd if this process may open no more descriptors.
            case Forked(pid, number):
                self._on_unreachable(pid, number)
            case ForkRefused(reason, number, error):
                self._refuse(number, OSError(reason) if error is None else OSError(error, reason))
            case Mounted(number):
                answer = self._asked.pop(number)
                if not answer.done():
                    answer.set_result(None)
            # The end of a discarded child is reported as well, but nobody knows the child.
            case Exited(pid, code) if pid in self._living:
                self._living.pop(pid).ended(code)

    def _on_forked(self, pid: int, number: int, pidfd: int) -> None:
        process = ForkedProcess(self._own_pid(pid, pidfd), pidfd, on_kill=self.hurry)
        self._living[pid] = process
        answer = self._asked.pop(number)
        if answer.cancelled():
            # The caller gave up when the request had been sent, so the server has forked all the same.
            process.send_signal(signal.SIGKILL)
        else:
            answer.set_result(process)

    def _own_pid(self, pid: int, _pidfd: int) -> int:
        """Return the pid of the server's child in the double's process namespace."""
        return pid

    def _on_unreachable(self, pid: int, number: int) -> None:
        """Refuse a kernel whose pidfd could not be received, because no signal could reach it."""
        self._unsent.append(_Unsent(encode(Discard(pid))))
        self._send()
        reason = f"{os.strerror(errno.EMFILE)}: no descriptor is free for the kernel's process"
        self._refuse(number, OSError(errno.EMFILE, reason))

    def _refuse(self, number: int, error: Exception) -> None:
        answer = self._asked.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _on_gone(self) -> None:
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        while self._unsent:
            self._unsent.popleft().close()
        for number in list(self._asked):
            self._refuse(number, ForkServerGoneError("the fork server has ended"))
        for process in self._living.values():
            process.ended(None)
        self._living.clear()
        self.gone.set_result(None)


class ForkServerClient(ForkChannel):
    """A running fork server; belongs to the event loop that started it.

    A server for "commands" does not import Jupyter, so it starts sooner and is smaller.
    """

    def __init__(
        self, preload: Sequence[str] = (), kind: Literal["kernels", "commands"] = "kernels"
    ) -> None:
        channel, self._process = _started(kind, preload)
        super().__init__(channel)

    @property
    def pid(self) -> int:
        """The id of the process that is an ancestor of all its kernels."""
        return self._process.pid

    def _on_gone(self) -> None:
        self._process.wait()  # it has closed its end, so it is ending
        super()._on_gone()


def preload_failure(modules: Sequence[str], timeout_s: float) -> str | None:
    """Import modules in another process, as a fork server would; return the reason of a failure.

    If a module takes longer, no failure is returned; the kernels' errors report it.
    """
    try:
        done = subprocess.run(  # noqa: S603 (our own module)
            [sys.executable, "-c", _TRY, *modules],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        return None
    told = done.stderr.decode("utf-8", "replace").strip().rpartition(_MARK)
    return told[2] if told[1] else f"a module ended Python with status {done.returncode}"


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def _started(kind: str, preload: Sequence[str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start a fork server; return the double's end of the channel and the server's process."""
    channel, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with remote:
            command = [sys.executable, "-m", _SERVER, str(remote.fileno()), kind, *preload]
            process = subprocess.Popen(  # noqa: S603 (our own module)
                command,
                pass_fds=[remote.fileno()],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
    except BaseException:
        channel.close()
        raise
    return channel, process


class ForkedProcess:
    """A forked process; signals go to its pidfd, so they never reach another process."""

    def __init__(self, pid: int, pidfd: int, on_kill: Callable[[], None]) -> None:
        self.pid = pid
        self._on_kill = on_kill
        self.exited: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._pidfd = pidfd

    def copied_pidfd(self) -> tuple[int, ...]:
        """Return a copy of the pidfd, in a tuple; raise OSError if the process has ended."""
        if self.exited.done():
            raise ProcessLookupError("the process has ended")
        return (os.dup(self._pidfd),)

    def send_signal(self, number: int) -> None:
        """Send a signal if the process is still alive."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)
            if number == signal.SIGKILL:
                self._on_kill()

    def has_ended(self) -> bool:
        """Return whether the process has ended, even if the server has not reported it yet."""
        if self.exited.done():
            return True
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    async def end(self) -> None:
        """Kill the process; return when it and all its descendants have ended."""
        self.send_signal(signal.SIGKILL)
        await asyncio.wait({self.exited})

    def ended(self, code: int | None) -> None:
        """Note that the process has ended; ``code`` is None if it is unknown."""
        if not self.exited.done():
            self.exited.set_result(code)
            os.close(self._pidfd)
