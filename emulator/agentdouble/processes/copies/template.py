"""A template: a process forked from a living kernel, which forks copies of that kernel.

The kernel forks it on its main thread while no code runs. The template abandons the kernel's
sockets and threads, runs no code of the session, and then serves the double as a fork server. It
ends with the double, or when the double no longer needs it.
"""

from __future__ import annotations

import gc
import os
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from agentdouble.processes.copies import kernel_copy, severing
from agentdouble.processes.copies.inherited_files import unshareable
from agentdouble.processes.copies.omissions import (
    break_pools,
    omissions,
    pause_openmp,
    zmq_contexts,
)
from agentdouble.processes.fork_server import processes, protocol
from agentdouble.processes.fork_server.kernel_app import BecomesTemplateError
from agentdouble.processes.fork_server.protocol import ForkRequest
from agentdouble.processes.fork_server.server import ForkServer

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.kernel_app import KernelApp

_templates: set[int] = set()  # the pids of this kernel's own templates


def fork_from(app: KernelApp, address: str, *, own_view: bool) -> dict[str, object]:
    """Fork a template, which connects to the double at ``address``; return what it lacks.

    Call this in the kernel's main thread while no code runs. In the template, this does not return
    but raises BecomesTemplateError. Raises ValueError if the kernel has mappings that no copy can
    have. ``own_view`` says whether it has a view of the file system for itself.
    """
    _reap()
    mapped = unshareable()
    if mapped:
        raise ValueError(f"it shares memory with {', '.join(mapped)}")
    if zmq_contexts() > 1:  # libzmq would end the copy's process
        raise ValueError("its code has ZMQ contexts: terminate them first")
    lacks = omissions(app.own_threads(), _templates, own_view=own_view)
    pause_openmp()
    # Connected before the fork, so that the kernel can still answer with the failure.
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.connect(address)
    with warnings.catch_warnings():
        # about forking with threads, which end in the fork
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        channel.close()
        _templates.add(pid)
        return {"omitted": lacks}
    raise BecomesTemplateError(channel, lacks)


def _reap() -> None:
    """Reap the templates that have ended, because each counts as a process of the session."""
    for pid in [*_templates]:
        with suppress(ChildProcessError):  # code of the session has already waited for it
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _templates.discard(pid)


def serve(
    app: KernelApp, request: BecomesTemplateError, run: Callable[[KernelApp], None]
) -> NoReturn:
    """Serve copies of the kernel in this new fork until the double no longer needs it.

    ``run`` runs a copy when it is connected.
    """
    code = 1
    try:
        inherited = kernel_copy.Inherited.take()
        if request.lacks:
            break_pools()
        severing.sever(app, [request.channel.fileno()])
        gc.disable()
        gc.freeze()  # or the first collection in a copy would write to most of the shared pages
        processes.adopt_orphans()
        server = _TemplateServer(request.channel, app, inherited, run)
        server.announce()
        server.serve()
        code = 0
    finally:
        os._exit(code)


class _TemplateServer(ForkServer):
    """A fork server whose kernels are copies of ``app``'s."""

    def __init__(
        self,
        channel: socket.socket,
        app: KernelApp,
        inherited: kernel_copy.Inherited,
        run: Callable[[KernelApp], None],
    ) -> None:
        super().__init__(channel)
        self._app = app
        self._inherited = inherited
        self._run_copy = run

    def announce(self) -> None:
        """Send the pid of this process to the double."""
        self._hand_over(os.getpid(), 0)

    def _prepare(self, request: ForkRequest) -> None:
        if request.kernel != protocol.COPY:
            raise ValueError(f"a template forks only copies, not {request.kernel}")

    def _run(self, request: ForkRequest, server: int, descriptors: list[int]) -> NoReturn:
        kernel_copy.run(request, server, descriptors[0], self._app, self._inherited, self._run_copy)
