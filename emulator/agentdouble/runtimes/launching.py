"""Start the process of an instance: the command, its environment, where it listens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path

from agentdouble.runtimes.definition import Definition, Program
from agentdouble.runtimes.logs import InstanceLog, Stream

HOST = "127.0.0.1"
_HOSTING = Path(__file__).with_name("inside") / "hosting.py"
_PIECE = 64 * 1024  # bytes of output that are read at once
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")


class Process:
    """A started instance's process tree; ``exited`` is done when it has ended."""

    def __init__(self, process: asyncio.subprocess.Process, log: InstanceLog) -> None:
        self._process = process
        self.pid = process.pid
        self.exited: asyncio.Future[int] = asyncio.ensure_future(process.wait())
        self._pumps = [
            asyncio.ensure_future(_pump(reader, stream, log))
            for reader, stream in _streams(process)
        ]

    async def end(self, patience_s: float) -> None:
        """Ask it to end, then kill it; return when nothing of it is left."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await asyncio.wait({self.exited}, timeout=patience_s)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self.exited
        await asyncio.gather(*self._pumps)


def _streams(
    process: asyncio.subprocess.Process,
) -> tuple[tuple[asyncio.StreamReader | None, Stream], ...]:
    return ((process.stdout, "stdout"), (process.stderr, "stderr"))


async def _pump(reader: asyncio.StreamReader | None, stream: Stream, log: InstanceLog) -> None:
    assert reader is not None
    while data := await reader.read(_PIECE):
        log.feed(stream, data)
    log.feed(stream, b"")


async def launch(definition: Definition, port: int, log: InstanceLog) -> Process:
    """Start a program that is to listen on ``port``, its output in ``log``; raise OSError."""
    program = definition.program
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return Process(
        await asyncio.create_subprocess_exec(
            *command_of(program),
            cwd=program.directory,
            env={**inherited, **definition.environment, "PORT": str(port)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        ),
        log,
    )


def command_of(program: Program) -> tuple[str, ...]:
    """Return the command line of a program."""
    if program.application is None:
        return program.command
    return (str(program.python or sys.executable), str(_HOSTING), program.application)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
