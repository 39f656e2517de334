"""The Python kernel: ipykernel, changed to obey every interrupt and to read every request.

The fork server forks it. Without a fork server it is a program, ``-f CONNECTION_FILE JSON``.

ipykernel alone does not stop ``await asyncio.sleep(60)``, because its handler does not wake the
event loop. It also does not stop sync code that runs inside a coroutine
(https://github.com/ipython/ipykernel/issues/881 and /1239).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

sys.modules["debugpy"] = None  # type: ignore[assignment]  # saves 40 ms, 8 MB and two threads
import ipykernel.debugger  # noqa: E402, F401 (it looks for debugpy when it is imported)

del sys.modules["debugpy"]

import zmq  # noqa: E402
from ipykernel._version import version_info  # noqa: E402
from ipykernel.iostream import IOPubThread  # noqa: E402
from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402
from ipykernel.subshell_manager import SubshellManager  # noqa: E402
from traitlets import Integer, default  # noqa: E402
from traitlets.config import Config  # noqa: E402

from agentdouble.processes.fork_server import processes  # noqa: E402
from agentdouble.processes.fork_server.kernel_output import (  # noqa: E402
    CappedSession,
    CappedStream,
    close_when_threads_end,
)


class SandboxKernel(IPythonKernel):
    """A kernel whose code can be interrupted anywhere, but only its code.

    ipykernel alone raises an interrupt anywhere in the handling of a message, for example between
    the parts of a reply, or where no code catches it and the kernel ends.
    """

    memory_limit = Integer(None, allow_none=True, config=True, help="bytes that code may use")
    _came = False
    _limited = False

    def pre_handler_hook(self) -> None:
        """Keep an interrupt until the code of the message is about to run."""
        self._came = False
        signal.signal(signal.SIGINT, self._keep)

    def post_handler_hook(self) -> None:
        """Ignore interrupts, because no code runs."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _keep(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if self._came:
                raise KeyboardInterrupt
            yield
        finally:
            signal.signal(signal.SIGINT, self._keep)

    async def do_execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run code that can be interrupted."""
        self._limit_memory()
        with self._interruptible():
            run = super().do_execute(*args, **kwargs)  # type: ignore[no-untyped-call]
            reply: dict[str, Any] = await run
            return reply

    def _limit_memory(self) -> None:
        """Limit memory before the first code runs; by then the kernel has mapped its own memory."""
        if self.memory_limit is not None and not self._limited:
            _limit_address_space(self.memory_limit)
        self._limited = True

    def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:  # type: ignore[override]
        """Complete code; this can be interrupted, because an object's ``__dir__`` may never end."""
        with self._interruptible():
            found: dict[str, Any] = super().do_complete(code, cursor_pos)  # type: ignore[no-untyped-call]
            return found

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def cancel(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(future.cancel)  # unlike call_soon, this wakes the loop
            if asyncio.current_task(loop) is not None:
                raise asyncio.CancelledError("interrupted")

        before = signal.signal(signal.SIGINT, cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class SandboxKernelApp(IPKernelApp):
    """The kernel application; it must be created only after the fork."""

    kernel_class = SandboxKernel
    outstream_class = f"{CappedStream.__module__}.{CappedStream.__name__}"

    @default("session")
    def _session_default(self) -> CappedSession:
        return CappedSession(parent=self)

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Remove zmq's limit of 1000 messages, so that a slow double loses no output."""
        context.setsockopt(zmq.SNDHWM, 0)
        IOPubThread._run_event_pipe_gc = close_when_threads_end  # type: ignore[method-assign]
        super().init_iopub(context)  # type: ignore[no-untyped-call]

    def init_crash_handler(self) -> None:
        """Do nothing, because the double notices crashes anyway."""

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Do nothing, because building the parser would take a quarter of the start."""

    def load_config_file(self, *_: object, **__: object) -> None:
        """Do nothing, because a session has no configuration files yet."""

    def init_kernel(self) -> None:
        """Send replies through the stream from which requests are read.

        Before 7.4, which is not available for Python 3.10, ipykernel writes directly to the socket
        of the stream. Then a request that arrives meanwhile, and all later ones, are never read
        (https://github.com/ipython/ipykernel/issues/1554).
        """
        if version_info < (7, 4):

            def send(_manager: SubshellManager, reply: list[Any]) -> None:
                self.kernel.shell_stream.send_multipart(reply)

            SubshellManager._send_on_shell_channel = send  # type: ignore[method-assign, assignment]
        super().init_kernel()  # type: ignore[no-untyped-call]

    def start(self) -> None:
        """Start the kernel, with garbage collection of only the objects that are created later."""
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGURG, _wake)
        super().start()  # type: ignore[no-untyped-call]


def run(connection_file: str, config: dict[str, Any]) -> None:
    """Run a kernel in this process until it is requested to stop.

    ``config`` holds traitlets settings, one table for each class.
    """
    app = SandboxKernelApp.instance(connection_file=connection_file, config=Config(config))
    app.initialize([])  # type: ignore[no-untyped-call]
    _set_up_matplotlib()
    app.start()


def _limit_address_space(memory: int) -> None:
    """Let this process use ``memory`` (bytes), but at least half of that more than it uses now.

    Linux limits the address space; code that needs more gets a MemoryError. An idle kernel has
    0.6 GiB of address space for 40 MB of memory. This differs between versions, so the present
    address space is added to the limit.
    """
    pages = Path("/proc/self/statm").read_text().split()
    size, used = (int(number) * resource.getpagesize() for number in pages[:2])
    processes.lower_limit(resource.RLIMIT_AS, size + max(memory - used, memory // 2))


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing; a handler ends Python's wait, and then Python handles a pending interrupt."""


def _set_up_matplotlib() -> None:
    """Set the backend of a preloaded matplotlib, which was imported before the kernel set one."""
    if "matplotlib" not in sys.modules:
        return
    import matplotlib

    matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    if "matplotlib.pyplot" in sys.modules:
        from matplotlib_inline.backend_inline import _enable_matplotlib_integration

        _enable_matplotlib_integration()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    run(sys.argv[2], json.loads(sys.argv[3]))
