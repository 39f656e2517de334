"""The kernel application in two halves: it is built once, and connected in each new process.

``build`` makes the kernel and IPython's shell, without a socket, a thread or an event loop, so that
a fork has them already. ``connect`` makes the rest: key and ids, sockets, threads and streams. It
does so in a fork of the process in which the kernel was built, and also in a fork of a kernel that
has been connected and has run code (a copy). ``copies.severing`` comes before that. What code may
hold (the streams, the session, the thread that sends output, the event loop) stays the same object.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import os
import signal
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO, TextIOWrapper
from logging import StreamHandler
from pathlib import Path
from types import FrameType
from typing import Any

import zmq
from ipykernel._version import version_info
from ipykernel.control import ControlThread
from ipykernel.displayhook import ZMQDisplayHook
from ipykernel.heartbeat import Heartbeat
from ipykernel.kernelapp import IPKernelApp
from ipykernel.shellchannel import ShellChannelThread
from ipykernel.subshell_manager import SubshellManager
from IPython.core.profiledir import ProfileDir
from IPython.paths import get_ipython_dir
from traitlets import default
from traitlets.config import Config
from zmq.eventloop.zmqstream import ZMQStream

from agentdouble.processes.fork_server.kernel_output import (
    CappedSession,
    CappedStream,
    OutputThread,
)
from agentdouble.processes.fork_server.late_channels import LateChannel
from agentdouble.processes.fork_server.protocol import BEGUN, BEGUN_LENGTH
from agentdouble.processes.fork_server.session_history import keep_history

_PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")


def refused_debugging(request: Mapping[str, Any], hint: str = "") -> dict[str, Any]:
    """Return a refusal of the Debug Adapter Protocol, which ``debug_request`` carries.

    debugpy would cost each session 40 ms, 8 MB, two threads and a port.
    """
    return {
        "type": "response",
        "request_seq": request.get("seq"),
        "success": False,
        "command": request.get("command"),
        "message": f"Kernels of sessions have no debugger.{hint}",
    }


class BecomesTemplateError(SystemExit):
    """Raised in a template to leave the kernel's event loop.

    ``channel`` leads to the double; ``lacks`` names what the fork does not have.
    """

    def __init__(self, channel: socket.socket, lacks: tuple[str, ...]) -> None:
        super().__init__()
        self.channel = channel
        self.lacks = lacks


class KernelApp(IPKernelApp):
    """A kernel application that is built once and may be connected several times."""

    streams: tuple[str, ...] = ("stdout", "stderr")
    user_context: contextvars.Context | None = None  # in which the code of the kernel has run
    late_channels: Sequence[LateChannel] = ()
    _opens_late = False
    _settled = False

    @default("session")
    def _session_default(self) -> CappedSession:
        return CappedSession(parent=self)

    def _ip_default(self) -> str:
        """Return the default address of connection files; looking it up would take 5 ms."""
        return "127.0.0.1"

    def initialize(self, argv: list[str] | None = None) -> None:
        """Build and connect the kernel in this process."""
        self.build()
        self.connect(self.connection_file, {})

    def init_crash_handler(self) -> None:
        """Do nothing, because the double notices crashes anyway."""

    # --- parts that are built once

    def build(self) -> None:
        """Make the kernel and its shell, with nothing that belongs to a session or a process."""
        # otherwise it makes 20 records per cell that no handler takes
        self.log.setLevel(self.log_level)
        self.iopub_thread = OutputThread()
        self.iopub_socket = self.iopub_thread.background_socket
        self.displayhook = ZMQDisplayHook(self.session, self.iopub_socket)  # type: ignore[no-untyped-call]
        self.outputs = [
            CappedStream(self.session, self.iopub_thread, name) for name in self.streams
        ]
        self._patch_subshells()
        temporary: Any = tempfile
        saved = temporary.tempdir, temporary._name_sequence, os.environ.get("IPYTHONDIR")
        with tempfile.TemporaryDirectory() as folder:  # until the session's own is known
            # In the environment too: without a home that can be written, IPython would make
            # directories and leave them behind.
            self.ipython_dir = os.environ["IPYTHONDIR"] = folder
            self.profile_dir = ProfileDir.create_profile_dir_by_name(folder, config=self.config)  # type: ignore[no-untyped-call]
            self.init_config_files()  # type: ignore[no-untyped-call]
            self.init_kernel()
            self.init_shell()  # type: ignore[no-untyped-call]
            if self.shell:
                keep_history(self.shell)
                self.init_extensions()  # type: ignore[no-untyped-call]
                self.shell._sys_modules_keys = set(sys.modules)
                self._modules = len(sys.modules)
        temporary.tempdir, temporary._name_sequence, directory = saved
        if directory is None:
            del os.environ["IPYTHONDIR"]
        else:
            os.environ["IPYTHONDIR"] = directory

    def init_kernel(self) -> None:
        """Create the kernel, without sockets."""
        kernel_class: Any = self.kernel_class
        self.kernel = kernel_class.instance(
            parent=self,
            session=self.session,
            iopub_thread=self.iopub_thread,
            iopub_socket=self.iopub_socket,
            log=self.log,
            profile_dir=self.profile_dir,
            user_ns=self.user_ns,
        )
        self.displayhook.get_execution_count = lambda: self.kernel.execution_count

    def _patch_subshells(self) -> None:
        """Send replies through the stream from which requests are read.

        Before 7.4, which is not available for Python 3.10, ipykernel writes directly to the socket
        of the stream. Then a request that arrives meanwhile, and all later ones, are never read
        (https://github.com/ipython/ipykernel/issues/1554).
        """
        if version_info < (7, 4):

            def send(_manager: SubshellManager, reply: list[Any]) -> None:
                self.kernel.shell_stream.send_multipart(reply)

            SubshellManager._send_on_shell_channel = send  # type: ignore[method-assign, assignment]

    # --- parts that each process has

    def connect(self, connection_file: str, config: Mapping[str, Mapping[str, Any]]) -> None:
        """Give the kernel the sockets, ids and settings of a session.

        A copy has first severed itself from its source; see ``copies``.
        """
        self.configure(config)
        self.session.renew()
        self.connection_file = connection_file
        for name in _PORTS:
            setattr(self, name, 0)
        has_file = os.path.exists(connection_file)  # noqa: PTH110 (each start has this path)
        if has_file:
            self.load_connection_file()
        else:  # then the kernel makes it
            self.init_connection_file()  # type: ignore[no-untyped-call]
        self.init_poller()  # type: ignore[no-untyped-call]
        if not self._settled:
            self._settle()
        self._opens_late = has_file and self.transport == "ipc" and self.shell is not None
        self.init_sockets()  # type: ignore[no-untyped-call]
        if not self._opens_late:
            self.init_heartbeat()
        if not has_file:
            self.write_connection_file()
        for stream in self.outputs:
            stream.connect(
                capture=self.capture_fd_output and "PYTEST_CURRENT_TEST" not in os.environ
            )
        if self.outputs:
            self._log_to_file()
        self.init_signal()  # type: ignore[no-untyped-call]
        self._connect_kernel()
        if self.user_context is not None:
            self.user_context.run(self.kernel.set_parent, [], {})
        elif self.shell:
            self.init_gui_pylab()  # type: ignore[no-untyped-call]
            self.init_code()
        self._settled = True

    def configure(self, config: Mapping[str, Mapping[str, Any]]) -> None:
        """Load the settings that differ from the present ones."""
        new = {name: table for name, table in config.items() if self.config.get(name) != table}
        if not new:
            return
        self.config.merge(Config(new))
        objects = (self, self.session, self.kernel, *getattr(self.shell, "configurables", ()))
        for configurable in objects:
            if any(kind.__name__ in new for kind in type(configurable).mro()):
                configurable._load_config(self.config)

    def _settle(self) -> None:
        """Set the kernel's process-wide state; a copy has inherited it."""
        self.init_pdb()  # type: ignore[no-untyped-call]
        self.configure_tornado_logger()  # type: ignore[no-untyped-call]
        self.init_path()  # type: ignore[no-untyped-call]
        self._trait_values["ipython_dir"] = get_ipython_dir()  # assigning would make it
        self.profile_dir = _profile_in(self.ipython_dir)
        self.config_file_paths = [self.profile_dir.location]
        self.init_config_files()  # type: ignore[no-untyped-call]
        self.kernel.profile_dir = self.profile_dir
        if not self.shell:
            return
        sys.displayhook = self.displayhook
        sys.stdout, sys.stderr = self.outputs
        self._move_shell()
        self.patch_io()  # type: ignore[no-untyped-call]

    def _move_shell(self) -> None:
        shell: Any = self.shell
        shell._trait_values["ipython_dir"] = self.ipython_dir  # assigning would make it
        shell.profile_dir = self.profile_dir
        shell.starting_dir = os.getcwd()  # noqa: PTH109 (a string is what is needed)
        shell.init_environment()
        shell.init_pushd_popd_magic()
        history = shell.history_manager
        history.dir_hist[:] = [Path.cwd()]
        history.hist_file = history._get_hist_file_name()
        if hasattr(shell, "init_logger"):  # before IPython 9
            shell.init_logger()
        if "db" in vars(shell):
            shell.db = type(shell.db)(f"{shell.profile_dir.location}/db")
        shell.save_sys_module_state()
        shell.init_sys_modules()

    def init_code(self) -> None:
        """Run the startup files; record the names that exist before the first cell.

        IPython would inspect the name of each module, and so write to 1 MiB of shared memory.
        """
        shell: Any = self.shell
        if "PYTHONSTARTUP" in os.environ or any(map(_has_startup_files, self.config_file_paths)):
            self._run_startup_files()  # type: ignore[no-untyped-call]
            for stream in self.outputs:
                stream.flush()
        shell.user_ns_hidden.update(shell.user_ns)
        new = len(sys.modules) - self._modules
        shell._sys_modules_keys.update(itertools.islice(reversed(sys.modules), max(new, 0)))

    def _log_to_file(self) -> None:
        """Keep the log out of the cells' output, as ipykernel does."""
        descriptor: int = self.outputs[1].fileno()  # type: ignore[no-untyped-call]
        for handler in self.log.handlers:
            if isinstance(handler, StreamHandler) and handler.stream is sys.__stderr__:
                handler.stream = TextIOWrapper(FileIO(descriptor, "w"))

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Connect the thread that sends output.

        Remove zmq's limit of 1000 messages, so that a slow double loses no output.
        """
        context.setsockopt(zmq.SNDHWM, 0)
        socket = context.socket(zmq.XPUB)
        socket.linger = 1000
        self._apply_curve_server_options(socket)
        self.iopub_port = self._bind_socket(socket, self.iopub_port)  # type: ignore[no-untyped-call]
        self.iopub_thread.connect(socket, self.session)

    def init_control(self, context: zmq.Context[Any]) -> None:
        """Make the control channel and the threads; without debugpy, no sockets for it."""
        if not self._opens_late:
            self._make_control()
        if self.shell:
            shell = () if version_info >= (7, 4) else (self.shell_socket,)
            self.shell_channel_thread = ShellChannelThread(context, *shell, daemon=True)

    def _make_control(self) -> None:
        context: Any = self.context
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self.control_socket.router_handover = 1
        self._apply_curve_server_options(self.control_socket)
        self.control_port = self._bind_socket(self.control_socket, self.control_port)  # type: ignore[no-untyped-call]
        self.control_thread = ControlThread(daemon=True)  # type: ignore[no-untyped-call]

    def _start_control(self) -> None:
        kernel = self.kernel
        kernel.control_stream = ZMQStream(self.control_socket, self.control_thread.io_loop)
        kernel.control_thread = self.control_thread
        self.control_thread.start()

    def _open_control(self) -> None:
        """Open the control channel for its first client, perhaps while code runs."""
        self._make_control()
        self._start_control()
        self.kernel.control_stream.on_recv(self.kernel.dispatch_control, copy=False)

    def init_heartbeat(self) -> None:
        """Answer heartbeats in the kernel's context; another one would need two more threads."""
        self.heartbeat = Heartbeat(self.context, (self.transport, self.ip, self.hb_port))  # type: ignore[no-untyped-call]
        self.hb_port = self.heartbeat.port
        self.heartbeat.start()

    def close(self) -> None:
        """Close the sockets; the end of the context is the end of the heartbeat."""
        self.heartbeat = None
        super().close()  # type: ignore[no-untyped-call]

    def _connect_kernel(self) -> None:
        """Give the kernel streams, threads and ids."""
        kernel = self.kernel
        shell_loop: Any = getattr(self.shell_channel_thread, "io_loop", None)
        kernel.shell_stream = ZMQStream(self.shell_socket, shell_loop)
        if self._opens_late:
            late = {self.control_port: self._open_control, self.hb_port: self.init_heartbeat}
            kernel._control_lock = asyncio.Lock()  # ``start`` makes it later than a client may come
            self.late_channels = [
                LateChannel(f"{self.ip}-{port}", shell_loop, open_channel)
                for port, open_channel in late.items()
            ]
        else:
            self._start_control()
        if self.shell_channel_thread:
            self.shell_channel_thread.shell_stream = kernel.shell_stream
            self.shell_channel_thread.start()
        kernel.stdin_socket = self.stdin_socket
        kernel.shell_channel_thread = self.shell_channel_thread
        kernel.record_ports({name: getattr(self, name) for name in _PORTS})
        kernel.ident = str(uuid.uuid4())
        if self.shell:
            self.shell.displayhook.topic = kernel._topic("execute_result")

    def start(self) -> None:
        """Start the kernel, with garbage collection of only the objects that are created later."""
        self.iopub_thread.schedule(self.iopub_thread.welcome)
        if self.user_context is None:
            gc.freeze()
            gc.enable()
            # The double sends it after an interrupt. Code that the interrupt reached just before it
            # slept would else heed the interrupt only after the sleep.
            signal.signal(signal.SIGURG, _wake)
            super().start()  # type: ignore[no-untyped-call]
        else:
            self.user_context.run(super().start)

    def mark_begun(self, parent: Mapping[str, Any]) -> None:
        """Record the request whose code begins, for the double if this process ends."""
        with suppress(OSError):
            mark: str = parent["header"]["msg_id"]
            path = f"{os.path.dirname(self.connection_file)}/{BEGUN}"  # noqa: PTH120 (each cell)
            # Overwritten: ext4 waits for the disk when a file is truncated and closed, 0.8 ms.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(descriptor, mark.encode().ljust(BEGUN_LENGTH))
            os.close(descriptor)

    def own_threads(self) -> tuple[threading.Thread | None, ...]:
        """Return the threads that every kernel has."""
        streams = (getattr(stream, "watch_fd_thread", None) for stream in self.outputs)
        named = (self.heartbeat, self.control_thread, self.shell_channel_thread)
        return (self.iopub_thread.thread, *named, *streams)


def _profile_in(ipython_dir: str) -> ProfileDir:
    """Return the profile without making its directories, which takes 2 ms.

    Whatever writes to one of them makes it.
    """
    profile: Any = ProfileDir()
    location = f"{ipython_dir}/profile_default"
    places = {
        f"{name}_dir": f"{location}/{getattr(profile, f'{name}_dir_name')}"
        for name in ("security", "log", "startup", "pid", "static")
    }
    profile._trait_values.update(places, location=location, _location_isset=True)
    return profile  # type: ignore[no-any-return]


def _has_startup_files(profile: str) -> bool:
    """Return what IPython finds with four patterns, which takes 1 ms in a new process."""
    with suppress(OSError):
        return any(name.endswith("py") for name in os.listdir(f"{profile}/startup"))  # noqa: PTH208
    return False


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing; a handler ends Python's wait, and then Python handles a pending interrupt."""
