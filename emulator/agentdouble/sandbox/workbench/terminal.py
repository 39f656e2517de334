"""One terminal: an interactive bash that several clients may share."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shlex
import struct
import termios

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.output import Output

_PIECE = 65536
_PROMPT = "gem@agentdouble:\\w $ "
# The terminal that a session leader opens first becomes its controlling terminal.
# (A bash that is not interactive drops a PS1 from its environment, so it is set here.)
_BEGIN = f'exec <>"$(tty)" >&0 2>&0; PS1={shlex.quote(_PROMPT)} exec bash --noprofile --norc -i'


class Terminal:
    """An interactive bash on a terminal; it stays alive when its clients disconnect."""

    def __init__(self, terminal_id: str) -> None:
        self.id = terminal_id
        self.output = Output()
        self.clients = 0
        self.used = False
        self.closed = False
        self._master = -1

    async def start(self, home: str, memory_limit: int | None) -> None:
        """Start the bash; raise OSError if it cannot be started."""
        limit = "" if memory_limit is None else f"ulimit -v {memory_limit // 1024} 2>/dev/null; "
        self._master, slave = pty.openpty()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *("bash", "--noprofile", "--norc", "-c", limit + _BEGIN),
                cwd=home,
                env={**processes.environment(), "TERM": "xterm-256color"},
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)
        processes.started.add(self._process.pid)
        os.set_blocking(self._master, False)
        asyncio.get_running_loop().add_reader(self._master, self._read)
        self._typed = asyncio.Lock()
        self._ended = asyncio.ensure_future(self._wait())

    async def type(self, text: str) -> None:
        """Type a text; return when the terminal has accepted it."""
        async with self._typed:
            data = text.encode("utf-8", "replace")
            while data and not self.closed:
                try:
                    data = data[os.write(self._master, data) :]
                except BlockingIOError:
                    await self._writable()
                except OSError:  # the other end is closed
                    return

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal."""
        if not self.closed:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def close(self) -> None:
        """End the bash and all processes that it has started."""
        processes.kill_tree(self._process.pid)
        await asyncio.wait({self._ended})

    async def _writable(self) -> None:
        loop, free = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(self._master, free.set)
        writable = asyncio.ensure_future(free.wait())
        await asyncio.wait({writable, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        writable.cancel()
        if not self.closed:
            loop.remove_writer(self._master)

    def _read(self) -> None:
        try:
            data = os.read(self._master, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a terminal reports so that its other end is closed
            data = b""
        if data:
            self.output.append(data)
        else:
            asyncio.get_running_loop().remove_reader(self._master)

    async def _wait(self) -> None:
        await self._process.wait()
        for _ in range(64):  # its last output; processes that it has left may continue to write
            self._read()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._master)
        loop.remove_writer(self._master)
        self.closed = True
        os.close(self._master)
        processes.started.discard(self._process.pid)
        self.output.wake()
