"""The steps of a new fork before it becomes a kernel: it replaces the server's state by its own."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from agentdouble.processes.fork_server import linux, processes
from agentdouble.processes.fork_server.confinement import Confinement, confine
from agentdouble.processes.fork_server.protocol import KERNELS, ForkRequest

_LIMITS = {
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


def run(request: ForkRequest, server: int, descriptors: Sequence[int] = ()) -> NoReturn:
    """Run the requested kernel in this process; then end the process with the kernel's exit code.

    ``server`` is the pid of the fork server.
    """

    def run_kernel() -> None:
        _settle(request, server, descriptors)
        importlib.import_module(KERNELS[request.kernel]).run(
            request.connection_file, request.config, *descriptors
        )

    end_with(run_kernel)


def end_with(run_kernel: Callable[[], None]) -> NoReturn:
    """Run a kernel; then end this process with its exit code.

    Never unwind into the frames of the server.
    """
    code = 1
    try:
        run_kernel()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        # Not through sys.stderr: the kernel's stream may not be connected yet.
        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def leave(server: int) -> None:
    """Leave the server's session and keyring, but end with it; ``server`` is its pid."""
    os.setsid()
    if os.getppid():  # it is 0 in a namespace, which ends with the fork server anyway
        processes.die_with_parent()
        if os.getppid() != server:  # it had died before, so Linux would not end this process
            raise ProcessLookupError("the fork server has ended")
    processes.adopt_orphans()
    linux.leave_keyring()


def _settle(request: ForkRequest, server: int, descriptors: Sequence[int]) -> None:
    close_inherited(descriptors)
    leave(server)
    reset_signals()
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    redirect_stdio(descriptors if request.outputs else (), request.stderr_file)
    os.chdir(request.cwd)
    reseed()
    if request.confinement is not None:
        confine(Confinement(**request.confinement))
    tempfile.tempdir = os.environ.get("TMPDIR")  # or Python tries to write there, 1 ms
    for name, value in request.limits.items():
        processes.lower_limit(_LIMITS[name], value)
    sys.argv = ["kernel", "-f", request.connection_file]


def close_inherited(exempt: Sequence[int]) -> None:
    """Close the server's descriptors; with its epoll descriptor alone, code could disturb it."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (the whole list before any is closed)
        if int(name) > 2 and int(name) not in exempt:
            with contextlib.suppress(OSError):  # the descriptor of the listing is closed by now
                os.close(int(name))


def reset_signals() -> None:
    """Restore the signal handling of a new Python process."""
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as in every Python: a BrokenPipeError instead
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def redirect_stdio(ends: Sequence[int], stderr_file: str | None) -> None:
    """Set the standard streams; ``ends`` are those of output, error and perhaps input."""
    null = os.open(os.devnull, os.O_RDWR)
    errors = null
    if stderr_file is not None:
        with contextlib.suppress(FileNotFoundError):  # its session has ended meanwhile
            errors = os.open(stderr_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    outputs, inputs = ends[:2], ends[2:]
    for descriptor, source in enumerate((*(inputs or (null,)), *(outputs or (null, errors)))):
        os.dup2(source, descriptor)
    for descriptor in {null, errors}:
        os.close(descriptor)


def reseed() -> None:
    """Seed the random numbers of each kernel differently."""
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
