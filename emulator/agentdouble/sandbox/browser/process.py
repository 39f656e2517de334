"""The process that runs a session's browser, in the session's confinement, as a kernel does.

It talks to the double over one Unix socket, ``control``. There it receives one socket for each
client, as a descriptor. It sends one JSON line when the browser is ready, and one when the browser
has ended. On a client's socket, CDP messages end with a NUL, as on the browser's pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentdouble.processes.fork_server import processes
from agentdouble.sandbox.browser import chromium
from agentdouble.sandbox.browser.multiplexer import CallFailedError, Client, Message, Multiplexer

LARGEST_MESSAGE = 256 * 1024 * 1024  # bytes
_ANSWER = re.compile(rb'\{"id":(\d+)')
_UNREAD = 64 * 1024 * 1024  # bytes that may wait for a client before it is disconnected
_WORDS_KEPT = 20  # lines of the browser's stderr
# On Linux, the browser's children are killed first, so its stderr closes. Elsewhere they may hold
# it.
_LAST_WORDS_S = 5.0 if sys.platform == "linux" else 0.2


def run(_connection_file: str, config: dict[str, Any], control: int) -> None:
    """Run a browser until the double closes ``control`` or the browser ends.

    ``config`` holds ``browser`` (its path), ``directory`` (for the browser's own files), ``width``
    and ``height`` (of its window, in pixels).
    """
    channel = socket.socket(fileno=_moved_up(control))
    try:
        browser = _Browser.start(config)
    except OSError as error:
        _report(channel, {"gone": f"it cannot be started: {error}"})
        return
    asyncio.run(_Host(channel, browser).run())


@dataclass(frozen=True)
class _Browser:
    """A browser's process, and this process's ends of its pipes, for reading and for writing."""

    process: subprocess.Popen[bytes]
    reading: int
    writing: int

    @classmethod
    def start(cls, config: dict[str, Any]) -> _Browser:
        """Start the browser; it reads from its descriptor 3 and writes to 4."""
        directory = Path(config["directory"])
        profile = directory / "profile"
        profile.mkdir(parents=True, exist_ok=True)
        size = config["width"], config["height"]
        sandbox = chromium.sandbox_is_possible()
        its_reading, writing = map(_moved_up, os.pipe())
        reading, its_writing = map(_moved_up, os.pipe())
        # 3 and 4 are free here. To move the pipes there between fork and exec would not be safe.
        os.dup2(its_reading, 3)
        os.dup2(its_writing, 4)
        for end in (its_reading, its_writing):
            os.close(end)
        process = subprocess.Popen(  # noqa: S603 (the browser's own command)
            chromium.command(config["browser"], profile, size=size, sandbox=sandbox),
            pass_fds=(3, 4),
            env=dict(chromium.environment(directory)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(3)
        os.close(4)
        return cls(process, reading, writing)


class _Host:
    def __init__(self, control: socket.socket, browser: _Browser) -> None:
        self._control = control
        self._browser = browser
        self._process = browser.process
        self._stderr_lines: deque[str] = deque(maxlen=_WORDS_KEPT)
        self._clients: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()
        self._to_browser: asyncio.StreamWriter
        self._multiplexer: Multiplexer

    async def run(self) -> None:
        """Share the browser until it ends or the double closes ``control``."""
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._on_control)
        speaking = asyncio.ensure_future(asyncio.to_thread(self._read_stderr))
        reader, self._to_browser = await _streams(self._browser.reading, self._browser.writing)
        self._multiplexer = Multiplexer(lambda message: self._to_browser.write(_frame(message)))
        talking = asyncio.ensure_future(self._listen(reader))
        starting = asyncio.ensure_future(self._welcome())
        leaving = asyncio.ensure_future(self._left.wait())
        await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        starting.cancel()
        self._process.kill()  # it has closed its pipe, or the double no longer needs it
        code = await asyncio.to_thread(self._process.wait)
        if sys.platform == "linux":
            _end_children()  # they keep the browser's stderr open
        await asyncio.wait({speaking}, timeout=_LAST_WORDS_S)
        _report(self._control, {"gone": _ending(code, self._stderr_lines)})
        _end_children()
        # A normal exit would wait for the threads that still read pipes that are held open.
        os._exit(0)

    async def _welcome(self) -> None:
        """Report to the double when the browser answers; then clients may connect."""
        try:
            version = await self._multiplexer.call("Browser.getVersion")
        except CallFailedError:  # the browser will end and report a better reason
            return
        _report(self._control, {"ready": version})

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Read the browser's messages until it ends."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await reader.readuntil(b"\0")
                self._multiplexer.from_browser(_read(frame[:-1]))

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr:
            for line in self._process.stderr:
                self._stderr_lines.append(line.decode("utf-8", "replace").rstrip()[:500])

    def _on_control(self) -> None:
        try:
            command, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        except BlockingIOError:
            return
        except ConnectionError:
            command = b""
        if not command:
            asyncio.get_running_loop().remove_reader(self._control)
            self._left.set()
            return
        for descriptor in descriptors:
            task = asyncio.ensure_future(self._serve(socket.socket(fileno=descriptor)))
            self._clients.add(task)
            task.add_done_callback(self._clients.discard)

    async def _serve(self, connection: socket.socket) -> None:
        """Connect one client to the browser until the client disconnects."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=LARGEST_MESSAGE)

        def deliver(message: Message) -> None:
            if writer.transport.get_write_buffer_size() > _UNREAD:
                writer.transport.abort()  # the client does not read its messages
            else:
                writer.write(_frame(message))

        client = await self._multiplexer.join(deliver)
        try:
            await self._pass_on(client, reader)
        finally:
            writer.close()
            with contextlib.suppress(CallFailedError):
                await self._multiplexer.leave(client)

    async def _pass_on(self, client: Client, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(
            asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError
        ):
            while True:
                frame = await reader.readuntil(b"\0")
                self._multiplexer.from_client(client, _parsed(frame[:-1]))
                await self._settle()

    async def _settle(self) -> None:
        """Wait until the browser has accepted all messages; never return if it has ended.

        The double must learn of the end before the clients do, because they may request another
        browser.
        """
        try:
            await self._to_browser.drain()
        except ConnectionError:
            await asyncio.Event().wait()


def _report(control: socket.socket, message: Message) -> None:
    with contextlib.suppress(OSError):
        control.send(json.dumps(message).encode() + b"\n")


def _end_children() -> None:
    """Kill what the browser left behind; a fork server, if there is one, would kill it too."""
    if sys.platform == "linux":
        while processes.kill_children(os.getpid()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
    elif os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # noqa: TID251 (this process leads its group)


def _moved_up(descriptor: int) -> int:
    """Replace a descriptor by a copy that leaves 3 and 4 free; return the copy."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


async def _streams(reading: int, writing: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LARGEST_MESSAGE)
    protocol = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(reading, "rb", 0))
    transport, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(writing, "wb", 0)
    )
    return reader, asyncio.StreamWriter(transport, flow, None, loop)


def _frame(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\0"


def _parsed(frame: bytes) -> Any:
    try:
        return json.loads(frame)
    except (ValueError, RecursionError):
        return None


def _read(frame: bytes) -> Message:
    """Return a message of the browser, or an error in place of a value from a page."""
    try:
        message: Message = json.loads(frame)
    except RecursionError:
        answered = _ANSWER.match(frame)
        error = {"code": -32000, "message": "The value is nested too deeply."}
        return {"id": int(answered[1]), "error": error} if answered else {"method": ""}
    return message


def _ending(code: int, lines: deque[str]) -> str:
    if code < 0:
        return f"it was killed by signal {-code}"
    fatal = [line for line in lines if "FATAL" in line or "error while loading" in line]
    return " ".join([f"it ended with exit code {code}.", *(fatal or list(lines))[-1:]])


if __name__ == "__main__":
    if sys.platform == "linux":
        processes.adopt_orphans()
    run("", json.loads(sys.argv[2]), int(sys.argv[3]))
