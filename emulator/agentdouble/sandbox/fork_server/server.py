"""The fork server's process: ``python -m agentdouble.sandbox.fork_server.server FD``.

It imports what every kernel needs, then forks one on request. It must stay single-threaded
and must not run user code. When its socket closes, the double is gone: it ends every kernel
and itself.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from agentdouble.sandbox.fork_server import child, processes, protocol, view
from agentdouble.sandbox.fork_server.protocol import Exited, Forked, ForkRequest, Refused

_ALWAYS = (
    "agentdouble.sandbox.fork_server.python_kernel",
    "agentdouble.sandbox.javascript.kernel",  # 20 ms and 3 MB once; saves both in each session
    # what IPython imports only when a shell is made or runs its first cell
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "IPython.utils.wildcard",
    "faulthandler",
    "pdb",
    "runpy",
    "tornado.platform.asyncio",
    "unicodedata",
)


def main() -> None:
    """Serve until the socket that argv names is closed at its other end."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    if sys.path[0] == str(Path.cwd()):
        del sys.path[0]  # where the double runs is no place for kernels to import from
    preload(sys.argv[2:])
    view.python_paths()
    processes.adopt_orphans()
    ForkServer(channel).serve()


def preload(modules: list[str]) -> None:
    """Import what the kernels shall find warm; keep the garbage collector off their pages."""
    gc.disable()
    for name in (*_ALWAYS, *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


class ForkServer:
    """Forks, reaps, and tells how each child ended."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._kernels: set[int] = set()
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)

    def serve(self) -> None:
        """Answer requests and reap children until the double is gone."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    self._reap()
                if self._channel in ready and not self._answer():
                    break
        self._end_all()

    def _answer(self) -> bool:
        """Answer one request; return False when there will be no more."""
        datagram = self._channel.recv(protocol.MAX_DATAGRAM)
        if not datagram:
            return False
        request = protocol.decode(datagram)
        assert isinstance(request, ForkRequest)
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(Refused(f"the kernel cannot be forked: {error}"))
            return True
        if pid == 0:
            self._become(request)
        self._kernels.add(pid)
        pidfd = os.pidfd_open(pid)
        try:
            self._tell(Forked(pid), pidfd)
        finally:
            os.close(pidfd)
        return True

    def _become(self, request: ForkRequest) -> NoReturn:
        """Turn this fresh fork into the kernel that was asked for; never returns."""
        signal.set_wakeup_fd(-1)
        for end in (self._channel, self._woken, self._wake):
            end.close()
        child.run(request)

    def _tell(self, message: protocol.Message, *descriptors: int) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendmsg([protocol.encode(message)], ancillary if descriptors else [])

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        for pid, code in _ended():
            if pid in self._kernels:
                self._kernels.remove(pid)
                self._end_orphans()
                self._tell(Exited(pid, code))

    def _end_orphans(self) -> None:
        """Kill what dead kernels have left: the orphans that this process has adopted."""
        while orphans := [p for p in processes.children(os.getpid()) if p not in self._kernels]:
            for pid in orphans:
                processes.kill_tree(pid)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _end_all(self) -> None:
        for pid in self._kernels:
            processes.kill_tree(pid)
        self._kernels.clear()
        self._end_orphans()


def _ended() -> list[tuple[int, int]]:
    """Reap every child that has ended; return pids and exit codes."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended


if __name__ == "__main__":
    main()
