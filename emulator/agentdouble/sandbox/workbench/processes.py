"""The processes that a workbench starts: their environment, and how their trees are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from agentdouble.processes.fork_server import signals

started: set[int] = set()  # asyncio waits for these itself


def environment() -> dict[str, str]:
    """Return the environment of a terminal: the session's, with its Python first in PATH."""
    path = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path}


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a session leader.

    This process adopts descendants whose parent has ended. They still belong to the leader's
    session, so they are found by that.
    """
    children = _children(os.getpid())
    orphans = {child for child in children if child.pid != pid and _session(child.pid) == pid}
    return list(orphans.union(_children(pid)))


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def send_signal(process: psutil.Process, number: int) -> None:
    """Send a signal if the process is still alive."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signals.send(process.pid, number, process.is_running)


def send_to_leader(pid: int, number: int) -> None:
    """Send a signal to a session leader if it is still alive."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signals.send(pid, number, lambda: pid in started)


def kill_tree(pid: int, *, include_leader: bool = True) -> None:
    """Kill a process's descendants, and the process if ``include_leader``.

    They are stopped first, so that none of them forks meanwhile.
    """
    if include_leader:
        send_to_leader(pid, signal.SIGSTOP)
    for descendant in _stopped(pid):
        send_signal(descendant, signal.SIGKILL)
    if include_leader:
        send_to_leader(pid, signal.SIGKILL)


def _stopped(pid: int) -> set[psutil.Process]:
    """Stop all descendants until no new one appears; return them."""
    stopped: set[psutil.Process] = set()
    while fresh := set(descendants(pid)) - stopped:
        for descendant in fresh:
            send_signal(descendant, signal.SIGSTOP)
        stopped |= fresh
    return stopped


def reap_orphans() -> None:
    """Wait for adopted processes that have ended; otherwise they would stay as zombies."""
    for pid in _adopted_dead():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _adopted_dead() -> Iterator[int]:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if child.pid not in started and child.status() == psutil.STATUS_ZOMBIE:
                yield child.pid
