"""The processes of an instance and their standard streams: to its log, or a conversation with its input and output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Protocol

from agentdouble.core import threads
from agentdouble.processes.launcher import StartedProcess
from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.logs import InstanceLog, Stream

_LAST_WORDS_S = 1.0  # a pipe ends with its last writer, and all of them are dead by then


class ProcessOutput(asyncio.Protocol):
    """The output of one pipe; ``ended`` is done when nothing more comes."""

    def __init__(self, stream: Stream, log: InstanceLog) -> None:
        self._stream: Stream = stream
        self._log = log
        self._transport: asyncio.BaseTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self, descriptor: int) -> None:
        """Begin to read from a pipe; the pipe is closed at the end."""
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(descriptor, "rb", 0)
        self._transport, _ = await loop.connect_read_pipe(lambda: self, pipe)

    def data_received(self, data: bytes) -> None:
        """Add the data to the log."""
        self._log.feed(self._stream, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing more comes."""
        self._log.feed(self._stream, b"")
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()


class Streams(Protocol):
    """The double's ends of a process's standard streams, and the workspace of the process."""

    workspace: Workspace

    async def open(self, descriptors: list[int]) -> None:
        """Append the process's ends: standard output, standard error and perhaps input."""

    async def finish(self) -> None:
        """Read what is left, and close everything, after the process has ended."""

    async def abandon(self) -> None:
        """Close everything, because there will be no process."""


class LoggedStreams:
    """Output and errors go to a log; the workspace is removed with the process."""

    def __init__(self, log: InstanceLog, workspace: Workspace) -> None:
        self.workspace = workspace
        self._outputs = (ProcessOutput("stdout", log), ProcessOutput("stderr", log))

    async def open(self, descriptors: list[int]) -> None:
        """Append the write ends of two new pipes."""
        for output in self._outputs:
            descriptors.append(await _pipe_to(output))

    async def finish(self) -> None:
        """Read what is left, then remove the workspace."""
        await _finish(self._outputs)
        await threads.run_in_thread(self.workspace.remove)

    async def abandon(self) -> None:
        """Close the pipes and remove the workspace."""
        _close(self._outputs)
        await threads.run_in_thread(self.workspace.remove)


class Conversation:
    """Lines are written to a process and read from it; its errors go to a log.

    The workspace is shared with other processes, and remains. A line that is longer than
    ``longest_line`` bytes is an error for the reader; twice as much is buffered.
    """

    def __init__(self, log: InstanceLog, workspace: Workspace, longest_line: int) -> None:
        self.workspace = workspace
        self._log = log
        self.lines = asyncio.StreamReader(limit=longest_line)
        self._input: asyncio.StreamWriter | None = None
        self._output: asyncio.BaseTransport | None = None
        self._errors = (ProcessOutput("stderr", log),)

    @property
    def input(self) -> asyncio.StreamWriter:
        """Where the process reads."""
        assert self._input is not None, "the conversation has been opened"
        return self._input

    async def open(self, descriptors: list[int]) -> None:
        """Append the process's ends of three new pipes."""
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        descriptors.append(writing)
        pipe = os.fdopen(reading, "rb", 0)
        protocol = asyncio.StreamReaderProtocol(self.lines)
        self._output, _ = await loop.connect_read_pipe(lambda: protocol, pipe)
        descriptors.append(await _pipe_to(self._errors[0]))
        reading, writing = os.pipe()
        descriptors.append(reading)
        self._input = await _writer(writing)

    async def finish(self) -> None:
        """Close the input, and read the rest of the errors; the lines are left to their reader."""
        self.input.close()
        await _finish(self._errors)
        self._log.feed("stdout", b"")

    async def abandon(self) -> None:
        """Close the pipes."""
        for transport in (self._output, self._input):
            if transport is not None:
                transport.close()
        _close(self._errors)

    def close(self) -> None:
        """Stop reading; a descendant that has left the process could hold the pipe open."""
        if self._output is not None:
            self._output.close()


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", 0)
    # the protocol of a StreamReader is asyncio's only one that knows when a pipe has room again
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _close(outputs: Sequence[ProcessOutput]) -> None:
    for output in outputs:
        output.close()


async def _finish(outputs: Sequence[ProcessOutput]) -> None:
    ended = [output.ended for output in outputs]
    await asyncio.wait(ended, timeout=_LAST_WORDS_S)
    _close(outputs)
    await asyncio.wait(ended)


async def _pipe_to(output: ProcessOutput) -> int:
    """Return the write end of a new pipe; ``output`` reads the other end."""
    reading, writing = os.pipe()
    try:
        await output.read(reading)
    except BaseException:
        os.close(reading)
        os.close(writing)
        raise
    return writing


class Process:
    """The process tree of a started instance; ``exited`` is done when it has ended."""

    def __init__(self, process: StartedProcess, streams: Streams) -> None:
        self._process = process
        self._streams = streams
        self.pid = process.pid
        self.exited = process.exited
        self._finished = asyncio.ensure_future(self._finish())

    @property
    def manner(self) -> str:
        """How the first process ended; only after it has ended."""
        code = self.exited.result()
        if code is None:
            return "was killed with the double's fork server"
        return f"ended with {f'code {code}' if code >= 0 else f'signal {-code}'}"

    async def end(self, patience_s: float) -> None:
        """Ask the process to end, then kill it; return when nothing of it is left.

        Without patience it is killed at once.
        """
        if patience_s:
            self._process.send_signal(signal.SIGTERM)
            await asyncio.wait({self.exited}, timeout=patience_s)
        self._process.send_signal(signal.SIGKILL)
        await self.finished()

    async def finished(self) -> None:
        """Return when it has ended and all its output is in the log."""
        await asyncio.shield(self._finished)

    async def _finish(self) -> None:
        await asyncio.wait({self.exited})
        await self._streams.finish()
