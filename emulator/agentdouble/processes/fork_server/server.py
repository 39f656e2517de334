"""The fork server's process: ``python -m agentdouble.processes.fork_server.server FD KIND``.

For the kind "kernels" it imports the modules that every kernel needs, for "commands" nothing. Then
it forks on request. It must stay single-threaded and must not run user code. When the double ends,
the socket closes; then the server ends all kernels and itself. It does the same if its guardian
ends.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from agentdouble.processes.fork_server import child, processes, protocol, view
from agentdouble.processes.fork_server.namespace_server import NamespaceServer
from agentdouble.processes.fork_server.namespaces import ProcessNamespaces
from agentdouble.processes.fork_server.protocol import (
    Discard,
    Exited,
    Forked,
    ForkRefused,
    ForkRequest,
    Mount,
    Mounted,
    Retain,
)

_ALWAYS = (
    "agentdouble.processes.fork_server.python_kernel",
    "agentdouble.sandbox.javascript.kernel",  # 20 ms and 3 MB once; saves both in each session
    # modules that IPython imports only when a shell is created or runs its first cell
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "IPython.utils.wildcard",
    "faulthandler",
    "pdb",
    "psutil",
    "runpy",
    "tornado.platform.asyncio",
    "unicodedata",
)
_LONGEST_REASON = 4096  # characters, so that the reason fits into a datagram
_NO_MEMORY = (errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S = 0.01


def main() -> None:
    """Serve until the other end of the socket in argv is closed."""
    processes.stand_behind()
    channel = socket.socket(fileno=int(sys.argv[1]))
    if sys.path[0] == str(Path.cwd()):
        del sys.path[0]  # kernels must not import from the double's working directory
    namespace_server = NamespaceServer()
    failure = preload(sys.argv[3:], kernels=sys.argv[2] == "kernels")
    view.python_paths()
    processes.adopt_orphans()
    ForkServer(channel, failure, namespace_server).serve()


def preload(modules: list[str], *, kernels: bool) -> str | None:
    """Import the modules that the forks share; keep the garbage collector off their pages.

    With ``kernels``, also import Jupyter's modules. Returns which of ``modules`` cannot be imported
    and why, or None if all can.
    """
    gc.disable()
    for name in _ALWAYS if kernels else ():
        with contextlib.suppress(ImportError):  # some versions of a library lack some of them
            importlib.import_module(name)
    failure = next(filter(None, map(_why_not, modules)), None)
    if kernels and failure is None:
        with contextlib.suppress(Exception):  # then each fork builds its own, and reports the error
            importlib.import_module(protocol.KERNELS["python"]).build_ahead()
    gc.collect()
    gc.freeze()
    return failure


def _why_not(module: str) -> str | None:
    """Import a module from the settings; return the reason of a failure, or None."""
    try:
        importlib.import_module(module)
    except BaseException as error:  # any error that the module raises, even SystemExit
        reason = f"{type(error).__name__}: {error}"
        return f"cannot import the module {module!r} of the setting preload: {reason}"
    return None


def _import(module: str) -> None:
    """Import the module for the first kernel of its kind; later kernels share the import."""
    if module not in sys.modules:
        importlib.import_module(module)
        gc.freeze()


class ForkServer:
    """Forks and reaps children and reports their ends; with a ``failure``, refuses to fork.

    A template has no ``namespace_server``.
    """

    def __init__(
        self,
        channel: socket.socket,
        failure: str | None = None,
        namespace_server: NamespaceServer | None = None,
    ) -> None:
        self._channel = channel
        self._failure = failure
        self._namespace_server = namespace_server
        self._kernels: set[int] = set()
        self._templates: dict[int, int] = {}  # the pid of each, by its pidfd
        fork_init = None if namespace_server is None else namespace_server.fork_init
        self._namespaces = ProcessNamespaces(fork_init)
        self._configured = False
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)

    def serve(self) -> None:
        """Answer requests and reap children until the double or the guardian has ended."""
        for number in (signal.SIGCHLD, processes.ASKED_TO_END):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            self._selector = selector
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                for pidfd in [pidfd for pidfd in self._templates if pidfd in ready]:
                    self._selector.unregister(pidfd)
                    os.close(pidfd)
                    self._namespaces.end_left_by(
                        {self._templates.pop(pidfd)}, but=self._templates.values()
                    )
                # Requests first: a kernel that has ended may have a template to keep.
                if self._channel in ready and not self._answer():
                    break
                if self._woken in ready and processes.ASKED_TO_END in self._reap():
                    break
        self._namespaces.kill()
        processes.end_children()

    def _answer(self) -> bool:
        """Answer one request; return False if there will be no more."""
        try:
            datagram, descriptors, flags, _ = socket.recv_fds(
                self._channel, protocol.MAX_DATAGRAM, protocol.MAX_DESCRIPTORS
            )
        except ConnectionResetError:  # the double has ended before it read all messages
            return False
        if not datagram:
            return False
        try:
            self._handle(protocol.decode(datagram), descriptors, flags)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _handle(self, message: protocol.Message, descriptors: list[int], flags: int) -> None:
        match message:
            case Discard(pid):
                self._kill(pid)
            case ForkRequest(number=number) if flags & socket.MSG_CTRUNC:
                reason = "the fork server has no free descriptor for those of a request"
                self._refuse(number, OSError(errno.EMFILE, reason))
            case ForkRequest():
                self._fork(message, descriptors)
            case Retain(home) if descriptors:
                self._keep_template(home, os.dup(descriptors[0]))
            case Mount() if descriptors and self._namespace_server:
                try:
                    user = self._namespaces.init_of(message.home_of_first) if os.geteuid() else None
                    self._namespace_server.mount_files(message, descriptors[0], user)
                except OSError as error:
                    self._refuse(message.number, error)
                else:
                    self._tell(Mounted(message.number))

    def _keep_template(self, home: str, pidfd: int) -> None:
        """Let a template and its process namespace outlive the kernel that forked it."""
        try:
            pid = processes.pid_of(pidfd)
        except ProcessLookupError:  # it has ended already
            os.close(pidfd)
            return
        self._templates[pidfd] = pid
        self._selector.register(pidfd, selectors.EVENT_READ)
        self._namespaces.retain(home, pid)

    def _fork(self, request: ForkRequest, descriptors: list[int]) -> None:
        refusal = self._refusal(request)
        if refusal is not None:
            self._refuse(request.number, refusal)
            return
        server = os.getpid()
        try:
            self._prepare(request)
            pid = self._namespaces.fork(request.confinement)
        except Exception as error:  # an import without descriptors or memory may raise any error
            self._refuse(request.number, error)
            return
        if pid == 0:
            self._become(request, server, descriptors)
        self._kernels.add(pid)
        try:
            self._hand_over(pid, request.number)
        except OSError as error:
            self._kill(pid)
            self._refuse(request.number, error)

    def _prepare(self, request: ForkRequest) -> None:
        module = protocol.KERNELS[request.kernel]
        _import(module)
        if request.kernel == "python" and not self._configured:
            self._configured = True
            sys.modules[module].configure_ahead(request.config)
            gc.freeze()

    def _run(self, request: ForkRequest, server: int, descriptors: list[int]) -> NoReturn:
        child.run(request, server, descriptors)

    def _hand_over(self, pid: int, number: int) -> None:
        pidfd = os.pidfd_open(pid)
        try:
            self._tell(Forked(pid, number), pidfd)
        finally:
            os.close(pidfd)

    def _refuse(self, number: int, cause: Exception | str) -> None:
        if isinstance(cause, str):
            self._tell(ForkRefused(cause[:_LONGEST_REASON], number))
            return
        error = cause.errno if isinstance(cause, OSError) else None
        reason = f"the kernel cannot be forked: {cause}"
        self._tell(ForkRefused(reason[:_LONGEST_REASON], number, error))

    def _kill(self, pid: int) -> None:
        """Kill a kernel, but only if it is not reaped yet, so that the pid is still its own."""
        if pid in self._kernels:
            processes.send(pid, signal.SIGKILL)

    def _refusal(self, request: ForkRequest) -> str | None:
        peer = (request.confinement or {}).get("network_of")
        if peer is not None and peer not in self._kernels:  # another process may have its pid now
            return f"the kernel {peer}, whose network it should join, has ended"
        return self._failure

    def _become(self, request: ForkRequest, server: int, descriptors: list[int]) -> NoReturn:
        """Turn this new fork into the requested kernel; never return."""
        signal.set_wakeup_fd(-1)
        for end in (self._channel, self._woken, self._wake, self._selector):
            end.close()
        for pidfd in self._templates:
            os.close(pidfd)
        self._namespaces.leave()
        self._run(request, server, descriptors)

    def _tell(self, message: protocol.Message, *descriptors: int) -> None:
        """Send a message to the double; retry if memory is short, unless it has ``descriptors``."""
        datagram, ancillary = [protocol.encode(message)], protocol.ancillary(descriptors)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                try:
                    self._channel.sendmsg(datagram, ancillary)
                    return
                except OSError as error:
                    if descriptors or error.errno not in _NO_MEMORY:
                        raise
                    time.sleep(_PAUSE_S)

    def _reap(self) -> bytes:
        """Reap ended children; return the numbers of the received signals."""
        signals = b""
        with contextlib.suppress(BlockingIOError):
            signals = self._woken.recv(4096)
        ended = dict(_ended())
        kernels = self._kernels & ended.keys()
        self._kernels -= kernels
        self._namespaces.end_left_by(ended.keys(), but=self._templates.values())
        if kernels:
            # orphans that dead kernels have left and this process has adopted
            templates = {*self._templates.values()}
            # Helpers are among them. One that was taken for an orphan was killed together with the
            # copy that it had just forked: of 60 copies, 4 at once, 3 did not start.
            own = self._namespaces.keepers
            if self._namespace_server is not None:
                own.add(self._namespace_server.pid)
            processes.end_children(but=self._kernels | templates | own)
        for pid in kernels:
            self._tell(Exited(pid, ended[pid]))
        return signals


def _ended() -> list[tuple[int, int]]:
    """Reap every ended child; return pids and exit codes."""
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
