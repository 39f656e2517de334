from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from agentdouble.processes.spawned_process import SpawnedProcess, spawn
from tests.agentdouble.calling import eventually

# Starts a process that leaves the session, prints its pid, and ends when its input ends.
DETACHING = """
import subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(child.pid, flush=True)
sys.stdin.read()
"""
# Waits for a child that an interrupt ends, but does not heed interrupts itself.
WAITING = """
import os, signal, subprocess
child = subprocess.Popen(["sleep", "600"])
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(child.pid, flush=True)
os._exit(-child.wait())
"""


async def started(code: str, directory: Path) -> tuple[SpawnedProcess, psutil.Process]:
    """Return a program, and the process whose pid it prints."""
    reading, writing = os.pipe()
    process = await spawn(
        *((sys.executable, "-c", code), directory, os.environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
    )
    os.close(writing)
    with os.fdopen(reading) as output:
        line = await asyncio.to_thread(output.readline)
    return process, psutil.Process(int(line))


@pytest.mark.parametrize("asks_first", [False, True])
def test_end_leaves_no_detached_process(asks_first: bool, tmp_path: Path) -> None:
    """A process that has left the session ends, too, also if its parent ends first when asked."""

    async def end() -> psutil.Process:
        process, child = await started(DETACHING, tmp_path)
        if asks_first:
            process.send_signal(signal.SIGTERM)
            await process.exited
        await process.end()
        assert process.has_ended()
        return child

    child = asyncio.run(end())

    eventually(lambda: child.is_running() and child.status(), {False, "zombie"}.__contains__)


def test_an_interrupt_reaches_the_group(tmp_path: Path) -> None:
    """A child ends that its parent waits for, as in a terminal."""

    async def interrupt() -> int | None:
        process, _ = await started(WAITING, tmp_path)
        process.send_signal(signal.SIGINT)
        code = await process.exited
        await process.end()
        return code

    assert signal.SIGINT == asyncio.run(interrupt())
