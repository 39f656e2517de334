"""The double's side of a session's browser: the process and the connections of clients."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentdouble.errors import BrowserError
from agentdouble.processes.fork_server.confinement import MIB
from agentdouble.processes.launcher import launch
from agentdouble.processes.workspace import Workspace
from agentdouble.sandbox.browser.process import LARGEST_MESSAGE
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.session_process import SessionProcess

if TYPE_CHECKING:
    from agentdouble.processes.launcher import ForkPlan, StartedProcess

PROGRAM = Language(  # it is started in the same way as a kernel
    name="browser",
    display_name="browser",
    kernel="browser",
    config={},
    memory="nothing",  # V8 reserves far more address space than it uses
)
_END_PATIENCE_S = 5.0
_SHARED_MEMORY = 1024 * MIB
_PROCESS_LIMIT = 1024  # with threads; each tab takes some 20


class BrowserConnection:
    """One client's connection to a browser: Chrome DevTools Protocol messages as JSON texts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: str) -> None:
        """Send a message; raise ConnectionError if the browser has ended."""
        self._writer.write(message.replace("\0", "").encode("utf-8", "replace") + b"\0")
        await self._writer.drain()

    async def receive(self) -> str | None:
        """Return the next message, or None after the last."""
        try:
            frame = await self._reader.readuntil(b"\0")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return None
        return frame[:-1].decode("utf-8", "replace")

    def close(self) -> None:
        """Close the connection; the browser then ends everything that this client made."""
        self._writer.close()


class Browser(SessionProcess):
    """A started browser process, which runs the browser and shares it between clients."""

    language = PROGRAM

    def __init__(self, process: StartedProcess, control: socket.socket) -> None:
        super().__init__(process)
        control.setblocking(False)
        self._control = control
        self._exit_message = ""
        self._unread = b""
        loop = asyncio.get_running_loop()
        self._version: asyncio.Future[Mapping[str, str]] = loop.create_future()
        loop.add_reader(control, self._on_control)
        self.died.add_done_callback(lambda _: self._close())

    @property
    def alive(self) -> bool:
        """Whether its process and the browser are alive."""
        return super().alive and not self._exit_message

    @property
    def user_agent(self) -> str:
        """The User-Agent that the browser sends to web servers."""
        return self._version.result()["userAgent"]

    async def ready(self, timeout_s: float) -> None:
        """Wait until the browser answers; raise BrowserError if it does not."""
        first: set[asyncio.Future[Any]] = {self._version, self.died}
        await asyncio.wait(first, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self.died.done():
            raise self.ended_error()
        if not self._version.done():
            raise BrowserError(f"it gave no answer for {timeout_s:g} s")

    async def connect(self) -> BrowserConnection:
        """Open a connection for one more client; raise BrowserError if the browser has ended."""
        local, remote = socket.socketpair()
        try:
            with remote:
                socket.send_fds(self._control, [b"c"], [remote.fileno()])
        except OSError:
            local.close()
            raise self.ended_error() from None
        return BrowserConnection(*await asyncio.open_connection(sock=local, limit=LARGEST_MESSAGE))

    async def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)  # the process ends the browser, then itself
        await asyncio.wait({self.died}, timeout=_END_PATIENCE_S)
        await super()._end()

    def ended_error(self) -> BrowserError:
        """Return the error that says how the browser ended."""
        if self._end_reason is None and (self._exit_message or not self.died.done()):
            return BrowserError(self._exit_message or "it is ending")
        return BrowserError(self.how_it_ended())

    def _on_control(self) -> None:
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._control)
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self._exit_message = self._exit_message or message.get("gone", "")
            if "ready" in message and not self._version.done():
                self._version.set_result(message["ready"])

    def _close(self) -> None:
        self._on_control()  # the last message may have arrived together with the end
        self.died.get_loop().remove_reader(self._control)
        self._control.close()
        self._version.cancel()


async def start(
    plan: ForkPlan | None, workspace: Workspace, run: Path, config: dict[str, Any]
) -> Browser:
    """Start a browser in a session; raise OSError or ForkServerGoneError.

    ``run`` is a directory for this browser only; ``config`` is passed to ``process.run``.
    """
    if plan is not None:
        confinement = _widened(plan.confinement, config["browser"])
        plan = dataclasses.replace(plan, confinement=confinement)
    control, remote_control = socket.socketpair()
    try:
        with remote_control:
            descriptors = (remote_control.fileno(),)
            process = await launch(
                *(PROGRAM.kernel, plan, workspace, run), config=config, descriptors=descriptors
            )
            return Browser(process, control)
    except BaseException:
        control.close()
        raise


def _widened(confinement: Mapping[str, Any] | None, browser: str) -> Mapping[str, Any] | None:
    """Return a session's confinement, widened by the additional needs of a browser."""
    if confinement is None:
        return None
    limit = confinement["process_limit"]
    return {
        **confinement,
        "visible": (*confinement["visible"], str(Path(browser).resolve().parent)),
        # the browser's own sandbox writes to /proc/self/uid_map; Landlock allows that only to
        # browsers
        "writable": ("/proc",),
        "shm_size": _SHARED_MEMORY,
        "process_limit": None if limit is None else max(limit, _PROCESS_LIMIT),
    }
