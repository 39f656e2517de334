"""The Python kernel: ipykernel, changed to obey every interrupt and to read every request.

The fork server forks it. Without a fork server it is a program, ``CONNECTION_FILE JSON``.

ipykernel alone does not stop ``await asyncio.sleep(60)``, because its handler does not wake the
event loop. It also does not stop sync code that runs inside a coroutine
(https://github.com/ipython/ipykernel/issues/881 and /1239).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

sys.modules["debugpy"] = None  # type: ignore[assignment]  # saves 40 ms, 8 MB and two threads
import ipykernel.debugger  # noqa: E402, F401 (it looks for debugpy when it is imported)

del sys.modules["debugpy"]

from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from traitlets import Integer  # noqa: E402
from traitlets.config import Config  # noqa: E402

from agentdouble.processes.fork_server import processes  # noqa: E402
from agentdouble.processes.fork_server.kernel_app import (  # noqa: E402
    BecomesTemplateError,
    KernelApp,
    refused_debugging,
)
from agentdouble.processes.fork_server.kernel_traces import (  # noqa: E402
    Traces,
    discard,
    warm_formatters,
    warm_up,
)
from agentdouble.processes.fork_server.protocol import (  # noqa: E402
    PYTHON_SETTINGS,
    TEMPLATE_REQUEST,
)


class SandboxKernel(IPythonKernel):
    """A kernel whose code can be interrupted anywhere, but only its code.

    ipykernel alone raises an interrupt anywhere in the handling of a message, for example between
    the parts of a reply, or where no code catches it and the kernel ends.
    """

    msg_types = [*IPythonKernel.msg_types, TEMPLATE_REQUEST]  # noqa: RUF012 (as the base class)
    memory_limit = Integer(None, allow_none=True, config=True, help="bytes that code may use")
    _came = False
    _limited = False

    def pre_handler_hook(self) -> None:
        """Defer interrupts until the code of the message is about to run."""
        if _gets_signals():
            self._came = False
            signal.signal(signal.SIGINT, self._defer)

    def post_handler_hook(self) -> None:
        """Ignore interrupts, because no code runs."""
        if _gets_signals():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _defer(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        if not _gets_signals():
            yield
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if self._came:
                raise KeyboardInterrupt
            yield
        finally:
            signal.signal(signal.SIGINT, self._defer)

    async def do_execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run code that can be interrupted."""
        # Before the first code runs: by now the kernel has mapped its own memory.
        if self.memory_limit is not None and not self._limited:
            _limit_address_space(self.memory_limit)
        self._limited = True
        with self._interruptible():
            self._app.mark_begun(self.get_parent("shell"))  # type: ignore[no-untyped-call]
            run = super().do_execute(*args, **kwargs)  # type: ignore[no-untyped-call]
            reply: dict[str, Any] = await run
            return reply

    async def agentdouble_template_request(
        self, stream: Any, ident: Any, parent: dict[str, Any]
    ) -> None:
        """Fork a template of this kernel; in the fork, this never returns."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._app.user_context = contextvars.copy_context()
        # Outside of any task: an exception that leaves the loop would leave a task undone.
        loop.call_soon(self._fork_template, parent["content"], answer)
        content = await answer
        self._app.session.send(stream, "agentdouble_template_reply", content, parent, ident)

    @property
    def _app(self) -> KernelApp:
        return cast("KernelApp", self.parent)

    def _fork_template(
        self, content: dict[str, Any], answer: asyncio.Future[dict[str, Any]]
    ) -> None:
        from agentdouble.processes.copies import template  # slow: few kernels become one

        try:
            answer.set_result(template.fork_from(self._app, **content))
        except Exception as error:
            answer.set_result(
                {
                    "status": "error",
                    "evalue": str(error),
                    "traceback": [],
                    "ename": type(error).__name__,
                }
            )

    def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:  # type: ignore[override]
        """Complete code; this can be interrupted, because an object's ``__dir__`` may never end."""
        with self._interruptible():
            reply: dict[str, Any] = super().do_complete(code, cursor_pos)  # type: ignore[no-untyped-call]
            return reply

    async def do_debug_request(self, msg: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse to debug."""
        return refused_debugging(msg, " Use %debug after an error.")

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


class SandboxKernelApp(KernelApp):
    """The application of the Python kernel."""

    kernel_class = SandboxKernel

    def init_pdb(self) -> None:
        """Use IPython's debugger, and pass breakpoints."""
        super().init_pdb()  # type: ignore[no-untyped-call]
        sys.breakpointhook = _pass_breakpoint

    def init_gui_pylab(self) -> None:
        """Set up matplotlib, which may be preloaded."""
        super().init_gui_pylab()  # type: ignore[no-untyped-call]
        _set_up_matplotlib()


@dataclass
class _Prebuilt:
    """A kernel that was built in advance for the forks of this process."""

    app: SandboxKernelApp
    traces: Traces

    def show(self) -> None:
        """Make this the kernel of this process."""
        self.traces.restore_attributes()
        parts: tuple[Any, ...] = (self.app, self.app.kernel, self.app.shell)
        for part in parts:
            for kind in type(part)._walk_mro():
                kind._instance = part


_ahead: _Prebuilt | None = None


def build_ahead() -> None:
    """Build the kernel that later forks of this process run; leave no trace in this process.

    Not all forks are Python kernels. Another kernel runs a cell and an error first, so the modules
    and caches for them are there, and the kernel of the forks has run nothing.
    """
    global _ahead
    before = Traces.take()
    try:
        contextvars.copy_context().run(_run_another)
        before.restore()
        app = _built(PYTHON_SETTINGS)
        warm_formatters(app)
        _ahead = _Prebuilt(app, Traces.take())
    finally:
        for kind in (SandboxKernelApp, SandboxKernel, SandboxKernel.shell_class.default_value):
            kind.clear_instance()
        before.restore()


def _run_another() -> None:
    app = _built(PYTHON_SETTINGS)
    warm_up(app)
    discard(app)


def _built(config: Mapping[str, Any]) -> SandboxKernelApp:
    app = SandboxKernelApp.instance(config=Config(config))
    app.build()
    return app


def configure_ahead(config: Mapping[str, Mapping[str, Any]]) -> None:
    """Give the kernel that was built in advance the settings that all sessions have."""
    if _ahead is not None:
        _ahead.app.configure(config)


def run(connection_file: str, config: dict[str, Any]) -> None:
    """Run a kernel in this process until it is requested to stop.

    ``config`` holds traitlets settings, one table for each class. In a fork of a template, the
    kernel is the template's.
    """
    if _ahead is not None:
        _ahead.show()
    app = _built(config) if _ahead is None else _ahead.app
    app.connect(connection_file, config)
    serve(app)


def serve(app: KernelApp) -> None:
    """Run a connected kernel until it is requested to stop; a template of it ends here as well."""
    try:
        app.start()
        return
    except BecomesTemplateError as error:
        request = error
    # Not inside the except clause: it would be the context of every error of a copy.
    from agentdouble.processes.copies import template  # slow: few kernels become one

    template.serve(app, request, serve)


def _pass_breakpoint(*args: Any, **kwargs: Any) -> Any:
    """Continue at a ``breakpoint()``, as a stock kernel does, unless PYTHONBREAKPOINT is set.

    A stock kernel has debugpy, whose hook does nothing while no debugger is attached.
    """
    if os.environ.get("PYTHONBREAKPOINT"):
        return sys.__breakpointhook__(*args, **kwargs)
    return None


def _gets_signals() -> bool:
    """Return whether this thread gets signals: only the main thread does."""
    return threading.current_thread() is threading.main_thread()


def _limit_address_space(memory: int) -> None:
    """Limit this process to ``memory`` bytes, but leave it at least half of that on top of its use.

    Linux limits the address space; code that needs more gets a MemoryError. An idle kernel has
    0.6 GiB of address space for 40 MB of memory. This differs between versions, so the present
    address space is added to the limit.
    """
    pages = Path("/proc/self/statm").read_text().split()
    size, used = (int(number) * resource.getpagesize() for number in pages[:2])
    processes.lower_limit(resource.RLIMIT_AS, size + max(memory - used, memory // 2))


def _set_up_matplotlib() -> None:
    """Set the backend of a preloaded matplotlib, which was imported before the kernel set one."""
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is None:
        return
    matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    if "matplotlib.pyplot" in sys.modules:
        from matplotlib_inline.backend_inline import _enable_matplotlib_integration  # optional

        _enable_matplotlib_integration()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
