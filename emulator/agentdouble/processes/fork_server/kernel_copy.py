"""The steps of a template's new fork before it is a kernel of its own.

The copy keeps the state of the source: its modules, variables, environment, working directory and
open files. It gets sockets, an identity and, in a view of its own, files of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from agentdouble.processes.fork_server import child, linux, namespaces, processes
from agentdouble.processes.fork_server.confinement import Confinement, give_up_rights
from agentdouble.processes.fork_server.protocol import GO, READY, ForkRequest

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.kernel_app import KernelApp

_HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGURG)  # by a fork server
_MIB = 1 << 20


@dataclass(frozen=True)
class Inherited:
    """What copies get back that a template changes, or loses when its source ends.

    ``files`` are the path, the flags and the position of each open file, by descriptor.
    """

    directory: str | None
    files: Mapping[int, tuple[str, int, int]]
    handlers: Mapping[signal.Signals, Callable[..., Any] | int | None]

    @classmethod
    def take(cls) -> Inherited:
        """Return what this process has."""
        directory = None
        with contextlib.suppress(FileNotFoundError):  # code has removed it
            directory = os.getcwd()  # noqa: PTH109
        handlers = {number: signal.getsignal(number) for number in _HANDLED}
        opened = _open_files()
        for number, (path, flags, position) in opened.items():
            if not os.path.exists(path):  # noqa: PTH110
                _replace(number, _copy_of_removed(number, flags), position)
        return cls(directory, opened, handlers)


def run(
    request: ForkRequest,
    template: int,
    gate: int,
    app: KernelApp,
    inherited: Inherited,
    run_kernel: Callable[[KernelApp], None],
) -> NoReturn:
    """Run a copy of a kernel in this process; then end the process with the kernel's exit code.

    ``template`` is the pid of the template. ``gate`` is a socket to the double: the copy sends
    ``READY`` when it can be given files of its own, and waits for ``GO``.
    """

    def run_copy() -> None:
        config = dict(request.config)
        moved = config.pop("moved", {})
        _settle(request, template, gate, inherited)
        _move_environment(moved)
        if inherited.directory is not None:
            with contextlib.suppress(OSError):
                os.chdir(_moved(inherited.directory, moved))
        _reopen(inherited.files, moved)
        gc.enable()
        app.connect(request.connection_file, config)
        run_kernel(app)

    child.end_with(run_copy)


def _settle(request: ForkRequest, template: int, gate: int, inherited: Inherited) -> None:
    child.leave(template)
    for number, handler in inherited.handlers.items():
        if handler is not None:
            signal.signal(number, handler)
    child.reseed()
    tempfile.tempdir = None
    with socket.socket(fileno=gate) as double:
        asked = None if request.confinement is None else Confinement(**request.confinement)
        if asked is not None:
            _enter_namespaces(asked)
        double.send(READY)
        if double.recv(1) != GO:
            raise ProcessLookupError("the double has given up this copy")
    if asked is not None:
        give_up_rights()
        if asked.process_limit is not None:
            processes.lower_limit(resource.RLIMIT_NPROC, asked.process_limit)
    child.redirect_stdio((), request.stderr_file)  # now, because the file is one of its own


def _enter_namespaces(asked: Confinement) -> None:
    """Give the copy mounts of its own, and perhaps a network; the rest is as in the source."""
    own_network = linux.CLONE_NEWNET if asked.network == "own" else 0
    linux.unshare(linux.CLONE_NEWNS | own_network)
    if own_network:
        namespaces.raise_loopback()


def _moved(path: str, moved: Mapping[str, str]) -> str:
    """Return where a path of the source is in the copy."""
    for old, new in moved.items():
        if path == old or path.startswith(f"{old}/"):
            return new + path[len(old) :]
    return path


def _move_environment(moved: Mapping[str, str]) -> None:
    for name, value in os.environ.items():
        if value.startswith("/") and _moved(value, moved) != value:
            os.environ[name] = _moved(value, moved)


def _open_files() -> dict[int, tuple[str, int, int]]:
    """Return the path, the flags and the position of each open file."""
    found = {}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            number = int(name)
            if number > 2 and stat.S_ISREG(os.fstat(number).st_mode):
                path = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
                position = os.lseek(number, 0, os.SEEK_CUR)
                found[number] = path, _flags(name), position
    return found


def _flags(descriptor: str) -> int:
    with open(f"/proc/self/fdinfo/{descriptor}") as file:  # noqa: PTH123
        return next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))


def _reopen(opened: Mapping[int, tuple[str, int, int]], moved: Mapping[str, str]) -> None:
    """Open the files of the source anew, so that copies share neither files nor positions."""
    for number, (path, flags, position) in opened.items():
        try:
            new = os.open(_moved(path, moved), flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))
        except OSError:  # it has been removed, so no path leads to it
            new = _copy_of_removed(number, flags)
        _replace(number, new, position)


def _replace(number: int, new: int, position: int) -> None:
    os.lseek(new, position, os.SEEK_SET)
    os.dup2(new, number, inheritable=os.get_inheritable(number))
    os.close(new)


def _copy_of_removed(number: int, flags: int) -> int:
    """Return a new file without a name that has the content of such a file."""
    mode = flags & (os.O_ACCMODE | os.O_APPEND)
    new = os.open(os.environ.get("TMPDIR", "/tmp"), os.O_TMPFILE | os.O_RDWR, 0o600)  # noqa: S108
    opened = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
    while os.sendfile(new, opened, None, _MIB):
        pass
    os.close(opened)
    again = os.open(f"/proc/self/fd/{new}", mode)  # it may be read or written as before
    os.close(new)
    return again
