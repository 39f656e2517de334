"""A small process beside the fork server, which makes namespaces and mounts for it.

It is forked before the fork server imports anything, so its own forks cost a tenth of the fork
server's. It ends with the fork server, and is started again if it has been killed.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from pathlib import Path
from typing import NoReturn

from agentdouble.processes.copies import copied_view
from agentdouble.processes.fork_server import child, linux, processes, protocol
from agentdouble.processes.fork_server.namespaces import fork_init
from agentdouble.processes.fork_server.protocol import Mount

_INIT = b"init"  # the request for an init; every other one is a Mount


class NamespaceServer:
    """The fork server's side of the small process; ``pid`` is that of the process."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._channel, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._channel.close()
            _serve(remote, parent)
        remote.close()

    def fork_init(self, lifeline: int) -> int:
        """Fork the init of a new process namespace, a child of this process; raise OSError."""
        return int(self._ask(_INIT, lifeline))

    def mount_files(self, request: Mount, copy: int, user_namespace_of: int | None) -> None:
        """Call ``copied_view.mount_files`` in the small process; raise OSError."""
        owners = () if user_namespace_of is None else (os.pidfd_open(user_namespace_of),)
        try:
            self._ask(protocol.encode(request), copy, *owners)
        finally:
            for pidfd in owners:
                os.close(pidfd)

    def _ask(self, request: bytes, *descriptors: int) -> bytes:
        answer = self._answer(request, *descriptors)
        if not answer:  # it has been killed, for example by the system for want of memory
            self._channel.close()
            self._start()
            answer = self._answer(request, *descriptors)
        number, _, text = answer.partition(b" ")
        if number == b"0":
            return text
        raise OSError(int(number or errno.ECHILD), text.decode(errors="replace"))

    def _answer(self, request: bytes, *descriptors: int) -> bytes:
        """Return the answer, or nothing if the process has been killed."""
        try:
            self._channel.sendmsg([request], protocol.ancillary(descriptors))
            return self._channel.recv(protocol.MAX_DATAGRAM)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def _serve(channel: socket.socket, parent: int) -> NoReturn:
    """Handle requests until the fork server has ended."""
    try:
        processes.die_with_parent()
        Path("/proc/self/comm").write_text("namespaces")  # its name in lists of processes
        child.close_inherited([channel.fileno()])
        signal.set_wakeup_fd(-1)
        child.reset_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Compared, because the parent may have ended before it was asked to take this process along.
        while os.getppid() == parent:
            request, descriptors, _, _ = socket.recv_fds(
                channel, protocol.MAX_DATAGRAM, protocol.MAX_DESCRIPTORS
            )
            if not request:
                break
            try:
                answer = b"0 " + _handle(request, descriptors)
            except OSError as error:
                answer = f"{error.errno or errno.EIO} {error.strerror or error}".encode()
            for descriptor in descriptors:
                os.close(descriptor)
            channel.send(answer)
    finally:
        os._exit(0)


def _handle(request: bytes, descriptors: list[int]) -> bytes:
    if request == _INIT:
        (lifeline,) = descriptors
        return b"%d" % fork_init(lifeline, linux.CLONE_PARENT)
    mount = protocol.decode(request)
    assert isinstance(mount, Mount)
    copied_view.mount_files(mount, *descriptors)
    return b""
