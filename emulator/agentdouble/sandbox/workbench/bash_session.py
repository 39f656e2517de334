"""One bash session: its process, its commands, and their outputs."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import signal
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentdouble.sandbox.workbench import bash_driver, processes
from agentdouble.sandbox.workbench.processes import CommandOutput

Status = Literal["pending", "running", "completed", "timed_out", "killed"]

_DRAINED = 1024 * 1024  # more than a pipe holds
_HEED_S = 0.5
_INTERRUPTED_S = 2.0
_REMEMBERED = 200
_TRIES, _PAUSE_S = 40, 0.05
_READ = ("stdout", "stderr", "results")


@dataclass
class BashCommand:
    """A command of a bash session; it is killed ``hard_timeout_s`` after its start."""

    text: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    exec_dir: str | None = None
    hard_timeout_s: float | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: Status = "pending"
    exit_code: int | None = None
    ended_bash: bool = False  # as ``exit`` does
    begins: tuple[int, int] = (0, 0)
    ends: tuple[int | None, int | None] = (0, 0)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)


class BashSession:
    """A bash that keeps its variables, functions and directory; it runs one command at a time.

    ``show`` turns a real path into the session's. If ``joined``, stderr goes to ``stdout``.
    """

    def __init__(
        self, session_id: str, directory: str, show: Callable[[str], str], *, joined: bool = False
    ) -> None:
        self.id = session_id
        self.working_dir = show(directory)
        self._directory = directory
        self.created_at = self.last_used_at = _now()
        self.commands: deque[BashCommand] = deque(maxlen=_REMEMBERED)
        self.command_count = 0
        self.stdout, self.stderr = CommandOutput(), CommandOutput()
        self.closed = False
        self._show = show
        self._joined = joined
        self._results = bytearray()
        self._result: asyncio.Future[tuple[int, str]] | None = None
        self._signalled = False
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, memory_limit: int | None) -> None:
        """Start the process; raise OSError if it cannot be started.

        Retries for a while if the process limit is reached, because the dead processes of a fork
        bomb still count. asyncio raises RuntimeError if it cannot start the thread that waits for
        the process.
        """
        for _ in range(_TRIES):
            with contextlib.suppress(BlockingIOError, RuntimeError):
                return await self._start(memory_limit)
            await asyncio.sleep(_PAUSE_S)
        try:
            return await self._start(memory_limit)
        except RuntimeError as error:
            raise OSError(str(error)) from None

    async def _start(self, memory_limit: int | None) -> None:
        loop = asyncio.get_running_loop()
        parent_ends, child_ends = self._open()
        self._theirs, self._ours = child_ends, parent_ends
        script = bash_driver.program(child_ends["commands"], child_ends["results"], memory_limit)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *("bash", "--noprofile", "--norc", "-c", script),
                cwd=self._directory,
                stdin=child_ends["stdin"],
                stdout=child_ends["stdout"],
                stderr=child_ends["stdout" if self._joined else "stderr"],
                pass_fds=(child_ends["commands"], child_ends["results"]),
                start_new_session=True,
            )
        except BaseException:
            _close(parent_ends)
            raise
        finally:
            _close(child_ends)
        processes.started.add(self._process.pid)
        for name in _READ:
            os.set_blocking(parent_ends[name], False)
            loop.add_reader(parent_ends[name], self._read, name)
        self._commands_in = await open_writer(parent_ends["commands"])
        self._stdin = await open_writer(parent_ends["stdin"])
        self._ended = asyncio.ensure_future(self._wait())

    def _open(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return this process's ends and the bash's ends of the pipes between them, by name."""
        pipes = {name: os.pipe() for name in ("stdin", "commands", "stdout", "stderr", "results")}
        parent_ends = {n: p[n in ("stdin", "commands")] for n, p in pipes.items()}
        return parent_ends, {n: p[n not in ("stdin", "commands")] for n, p in pipes.items()}

    @property
    def current(self) -> BashCommand | None:
        """The running command, or the first that waits, or None."""
        return next((command for command in self.commands if not command.done.is_set()), None)

    def run(self, command: BashCommand) -> None:
        """Run a command after the earlier ones; set ``command.done`` when it is done."""
        self.last_used_at = _now()
        command.begins = command.ends = (self.stdout.end, self.stderr.end)
        if self.current is None:
            command.status = "running"
        self.commands.append(command)
        self.command_count += 1
        task = asyncio.ensure_future(self._run(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, command: BashCommand) -> None:
        async with self._turn:
            if not self.closed and not command.abandoned.is_set():
                await self._run_now(command)
        if not command.done.is_set():  # its bash ended or its caller disconnected before its turn
            command.begins = (self.stdout.end, self.stderr.end)
            self._finish(command, "killed", None)

    async def _run_now(self, command: BashCommand) -> None:
        command.status = "running"
        command.begins, command.ends = (self.stdout.end, self.stderr.end), (None, None)
        self._signalled = False
        self._result = asyncio.get_running_loop().create_future()
        with contextlib.suppress(ConnectionError):
            self._commands_in.write(self._chunk(command))
            await self._commands_in.drain()
        await self._over(command)
        overrun = not self._result.done() and not self._ended.done()
        timed_out = overrun and not command.abandoned.is_set()
        if overrun and not timed_out:
            await self._interrupt()
        if overrun:
            await self._force()
        command.ended_bash = not self._result.done()
        code = self._exit_code()
        ending: Status = "killed" if self._signalled else "completed"
        self._finish(command, "timed_out" if timed_out else ending, code)

    @contextlib.contextmanager
    def interrupting(self, command: BashCommand) -> Iterator[None]:
        """Interrupt the command if the caller disconnects while it waits inside the context.

        The processes of the command get SIGINT, and SIGKILL after 2 s. If bash itself runs the
        command, the bash ends. A command with ``async_mode``, or one that has run longer than
        ``timeout``, continues.
        """
        try:
            yield
        except asyncio.CancelledError:
            command.abandoned.set()
            raise

    async def _over(self, command: BashCommand) -> None:
        """Wait until a command is done, or must be ended."""
        assert self._result is not None
        abandoned = asyncio.ensure_future(command.abandoned.wait())
        await _first(command.hard_timeout_s, self._result, self._ended, abandoned)
        abandoned.cancel()

    async def _interrupt(self) -> None:
        """Interrupt the processes of the command, but not the bash, which would end."""
        assert self._result is not None
        self.signal(signal.SIGINT, include_leader=False)
        await _first(_INTERRUPTED_S, self._result, self._ended)

    def _chunk(self, command: BashCommand) -> bytes:
        return bash_driver.chunk(
            command.text,
            commands=self._theirs["commands"],
            results=self._theirs["results"],
            exec_dir=command.exec_dir,
            env=command.env,
        )

    def _exit_code(self) -> int:
        assert self._result is not None
        if self._result.done():
            code, directory = self._result.result()
            self.working_dir = self._show(directory)
            return code
        assert self._process.returncode is not None
        code = self._process.returncode
        return code if code >= 0 else 128 - code  # as a shell reports a signal

    def _finish(self, command: BashCommand, status: Status, code: int | None) -> None:
        for name in ("stdout", "stderr"):
            self._read(name)  # a command's output reaches its pipe before its exit code arrives
        command.status, command.exit_code = status, code
        command.ends = (self.stdout.end, self.stderr.end)
        self.last_used_at = _now()
        command.done.set()
        self.stdout.wake()
        self.stderr.wake()

    async def _force(self) -> None:
        """End the running command, and also the bash if bash itself runs the command."""
        assert self._result is not None
        if self._result.done() or self._ended.done():
            return
        processes.kill_tree(self._process.pid, include_leader=False)
        await _first(_HEED_S, self._result, self._ended)
        if not self._result.done():
            processes.kill_tree(self._process.pid)
            await asyncio.wait({self._ended})

    async def write(self, text: str) -> None:
        """Write to the standard input of the running command."""
        self._stdin.write(text.encode())
        await self._stdin.drain()

    def signal(self, number: int, *, include_leader: bool = True) -> None:
        """Signal the command's processes; if it has none, the bash if ``include_leader``."""
        self._signalled = True
        targets = processes.descendants(self._process.pid)
        for process in targets:
            processes.send_signal(process, number)
        if include_leader and not targets:
            processes.send_to_leader(self._process.pid, number)

    async def close(self) -> None:
        """End the bash and all processes that it has started."""
        self.closed = True
        processes.kill_tree(self._process.pid)
        await asyncio.wait({self._ended})

    async def end(self) -> None:
        """End the idle bash, but not the processes that it has started and left."""
        self.closed = True
        self._commands_in.close()  # it ends when there is nothing more to read
        await _first(_HEED_S, self._ended)
        if not self._ended.done():
            processes.send_to_leader(self._process.pid, signal.SIGKILL)
            await asyncio.wait({self._ended})

    async def _wait(self) -> None:
        await self._process.wait()
        self.closed = True
        for name in ("stdout", "stderr"):
            self._read(name)
        loop = asyncio.get_running_loop()
        for name in _READ:
            loop.remove_reader(self._ours[name])
            os.close(self._ours[name])
        self._ours.clear()
        self._commands_in.close()
        self._stdin.close()
        processes.started.discard(self._process.pid)

    def _read(self, name: str) -> None:
        """Read what a pipe holds now, but not endlessly during a flood."""
        budget = _DRAINED
        while name in self._ours and budget > 0:
            try:
                data = os.read(self._ours[name], 65536)
            except BlockingIOError:
                return
            if not data:
                asyncio.get_running_loop().remove_reader(self._ours[name])
                return
            budget -= len(data)
            self._take(name, data)

    def _take(self, name: str, data: bytes) -> None:
        if name != "results":
            (self.stdout if name == "stdout" else self.stderr).append(data)
            return
        self._results += data
        *records, incomplete = bytes(self._results).split(b"\0")
        self._results = bytearray(incomplete)
        for record in records:
            if self._result is not None and not self._result.done():
                self._result.set_result(bash_driver.read_result(record))

    def to_dict(self) -> dict[str, Any]:
        """Return the session as an entry of the list of sessions."""
        current = self.current
        return {
            "session_id": self.id,
            "status": "closed" if self.closed else "ready",
            "working_dir": self.working_dir,
            "created_at": self.created_at.isoformat(),
            "last_used_at": self.last_used_at.isoformat(),
            "current_command": None if current is None else current.text,
            "command_count": self.command_count,
        }


async def _first(timeout_s: float | None, *futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


async def open_writer(descriptor: int) -> asyncio.StreamWriter:
    """Return a stream that writes to a descriptor, and closes it."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _close(descriptors: Mapping[str, int]) -> None:
    for descriptor in descriptors.values():
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)


SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL, "SIGINT": signal.SIGINT}
