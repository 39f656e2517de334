"""The steps of a template's new fork before it becomes a separate kernel.

The copy keeps the state of the source: its modules, variables, environment, working directory and
open files. It gets its own sockets and identity and, if it has its own view, its own files.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from agentdouble.processes.copies import severing
from agentdouble.processes.copies.inherited_files import InheritedFiles, moved_path
from agentdouble.processes.fork_server import child, linux, namespaces, processes
from agentdouble.processes.fork_server.confinement import Confinement, give_up_rights
from agentdouble.processes.fork_server.protocol import GO, READY, ForkRequest

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.kernel_app import KernelApp

_NEW_DESCRIPTORS = 64  # a kernel opens fewer
_HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGURG)  # by a fork server


@dataclass(frozen=True)
class Inherited:
    """State that a template changes or loses when its source ends, restored in copies."""

    directory: str | None
    files: InheritedFiles
    handlers: Mapping[signal.Signals, Callable[..., Any] | int | None]

    @classmethod
    def take(cls) -> Inherited:
        """Return the state of this process."""
        directory = None
        with contextlib.suppress(FileNotFoundError):  # code has removed the directory
            directory = os.getcwd()  # noqa: PTH109
        handlers = {number: signal.getsignal(number) for number in _HANDLED}
        return cls(directory, InheritedFiles(), handlers)


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
        _make_room_for_descriptors()
        config = dict(request.config)
        moved = config.pop("moved", {})
        _settle(request, template, gate, inherited)
        for name, value in os.environ.items():
            if value.startswith("/"):
                os.environ[name] = moved_path(value, moved)
        if isinstance(tempfile.tempdir, str):
            tempfile.tempdir = moved_path(tempfile.tempdir, moved)
        if inherited.directory is not None:
            with contextlib.suppress(OSError):
                os.chdir(moved_path(inherited.directory, moved))
        inherited.files.replace(moved, shared_memory=request.confinement is not None)
        gc.enable()
        severing.renew_loop(app.io_loop)
        app.connect(request.connection_file, config)
        run_kernel(app)

    child.end_with(run_copy)


def _make_room_for_descriptors() -> None:
    """Enlarge the table of descriptors while this process has one thread.

    With several threads, Linux would wait 7 to 11 ms for all processors.
    """
    highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    with contextlib.suppress(OSError):  # the limit of open files is lower
        os.close(os.dup2(0, highest + _NEW_DESCRIPTORS))


def _settle(request: ForkRequest, template: int, gate: int, inherited: Inherited) -> None:
    child.leave(template)
    for number, handler in inherited.handlers.items():
        if handler is not None:
            signal.signal(number, handler)
    child.reseed()
    with socket.socket(fileno=gate) as double:
        confinement = None if request.confinement is None else Confinement(**request.confinement)
        if confinement is not None:
            _enter_namespaces(confinement)
        double.send(READY)
        if double.recv(1) != GO:
            raise ProcessLookupError("the double has abandoned this copy")
    if confinement is not None:
        give_up_rights()
        if confinement.process_limit is not None:
            processes.lower_limit(resource.RLIMIT_NPROC, confinement.process_limit)
    child.redirect_stdio((), request.stderr_file)  # now, because the file is one of its own


def _enter_namespaces(confinement: Confinement) -> None:
    """Give the copy its own mounts, and perhaps a network; the rest is as in the source."""
    own_network = linux.CLONE_NEWNET if confinement.network == "own" else 0
    linux.unshare(linux.CLONE_NEWNS | own_network)
    if own_network:
        namespaces.raise_loopback()
