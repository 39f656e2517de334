"""``WS /v1/shell/ws``: interactive terminals that clients may share, in JSON frames."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import shlex
import struct
import termios
import time
import uuid
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.bash_session import open_writer
from agentdouble.sandbox.workbench.processes import CommandOutput
from agentdouble.sandbox.workbench.wire import HOME, Paths, until_one_ends

_PIECE = 65536
_PROMPT = "gem@agentdouble:\\w $ "
# The terminal that a session leader opens first becomes its controlling terminal.
# (A bash that is not interactive drops a PS1 from its environment, so it is set here.)
_BEGIN = f'exec <>"$(tty)" >&0 2>&0; PS1={shlex.quote(_PROMPT)} exec bash --noprofile --norc -i'


class Terminal:
    """An interactive bash on a terminal; it stays alive when its clients disconnect."""

    def __init__(self, terminal_id: str) -> None:
        self.id = terminal_id
        self.output = CommandOutput()
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
                env={**os.environ, "TERM": "xterm-256color"},
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
        self._keyboard = await open_writer(os.dup(self._master))
        self._ended = asyncio.ensure_future(self._wait())

    async def type(self, text: str) -> None:
        """Type a text; return when the terminal has accepted it."""
        with contextlib.suppress(ConnectionError):  # its bash has ended
            self._keyboard.write(text.encode("utf-8", "replace"))
            await self._keyboard.drain()

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal."""
        if not self.closed:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def close(self) -> None:
        """End the bash and all processes that it has started."""
        processes.kill_tree(self._process.pid)
        await asyncio.wait({self._ended})

    def _read(self) -> None:
        try:
            data = os.read(self._master, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a terminal reports in this way that its other end is closed
            data = b""
        if data:
            self.output.append(data)
        else:
            asyncio.get_running_loop().remove_reader(self._master)

    async def _wait(self) -> None:
        await self._process.wait()
        for _ in range(64):  # its last output; processes that it has left may continue to write
            self._read()
        asyncio.get_running_loop().remove_reader(self._master)
        self._keyboard.transport.abort()
        self.closed = True
        os.close(self._master)
        processes.started.discard(self._process.pid)
        self.output.wake()


MOST = 16
PING_S = 30.0
_LONGEST_NAME = 200
_TRY_AGAIN = 1013


class Terminals:
    """The terminals of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._paths = paths
        self._memory_limit = memory_limit
        self._living: dict[str, Terminal] = {}
        self._making = asyncio.Lock()

    def route(self) -> WebSocketRoute:
        """Return the route."""
        return WebSocketRoute("/v1/shell/ws", self.attach)

    async def attach(self, websocket: WebSocket) -> None:
        """Connect a client to the terminal that it names, or to a new one."""
        await websocket.accept()
        name = websocket.query_params.get("session_id") or uuid.uuid4().hex
        try:
            terminal = await self._get_or_make(name[:_LONGEST_NAME])
        except OSError as error:
            await websocket.send_json({"type": "error", "data": f"No terminal: {error}."})
            await websocket.close(_TRY_AGAIN)
            return
        terminal.clients += 1
        try:
            await _serve(websocket, terminal)
        except WebSocketDisconnect:
            pass
        finally:
            terminal.clients -= 1

    async def _get_or_make(self, name: str) -> Terminal:
        async with self._making:
            self._living = {name: t for name, t in self._living.items() if not t.closed}
            terminal = self._living.get(name)
            if terminal is not None:
                return terminal
            await self._make_room()
            terminal = Terminal(name)
            await terminal.start(self._paths.real(HOME), self._memory_limit)
            self._living[name] = terminal
            return terminal

    async def _make_room(self) -> None:
        """End the oldest terminal without a client if the limit is reached."""
        if len(self._living) < MOST:
            return
        unused = next((t for t in self._living.values() if not t.clients), None)
        if unused is None:
            raise OSError(f"too many terminals (limit {MOST})")
        await unused.close()
        del self._living[unused.id]


async def _serve(websocket: WebSocket, terminal: Terminal) -> None:
    await websocket.send_json({"type": "session_id", "data": terminal.id})
    offset = 0
    if terminal.used:
        text, offset = terminal.output.read(0)
        await websocket.send_json({"type": "restore_output", "data": text})
        await websocket.send_json({"type": "terminal_restored", "data": terminal.id})
    terminal.used = True
    await websocket.send_json({"type": "ready", "data": terminal.id})
    await until_one_ends(
        _show(websocket, terminal, offset), _take(websocket, terminal), _ping(websocket)
    )
    await websocket.close()


async def _show(websocket: WebSocket, terminal: Terminal, offset: int) -> None:
    """Send the output of the terminal until its bash has ended."""
    while True:
        closed = terminal.closed
        text, offset = terminal.output.read(offset, terminal.output.end if closed else None)
        if text:
            await websocket.send_json({"type": "output", "data": text})
        elif closed:
            return
        elif not terminal.closed:
            await terminal.output.changed()


async def _take(websocket: WebSocket, terminal: Terminal) -> None:
    """Act on the frames of a client; an invalid one is answered with an error."""
    while True:
        try:
            await _act(terminal, json.loads(await websocket.receive_text()))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, struct.error):
            message = "a frame must be JSON: input with text, resize with cols and rows, or pong"
            await websocket.send_json({"type": "error", "data": message})


async def _act(terminal: Terminal, frame: Any) -> None:
    kind = frame["type"]
    if kind == "input":
        await terminal.type(frame["data"])
    elif kind == "resize":
        terminal.resize(frame["data"]["cols"], frame["data"]["rows"])
    elif kind != "pong":
        raise ValueError(kind)


async def _ping(websocket: WebSocket) -> None:
    while True:
        await asyncio.sleep(PING_S)
        now_ms = int(time.time() * 1000)
        await websocket.send_json({"type": "ping", "data": now_ms, "timestamp": now_ms})
