"""The processes that a workbench starts: their environment, their output, and how to kill them."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import psutil

from agentdouble.processes.fork_server import processes

started: set[int] = set()  # asyncio waits for these itself


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a session leader.

    This process adopts descendants whose parent has ended. They still belong to the leader's
    session, and are found by it.
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
        processes.send(process.pid, number, process.is_running)


def send_to_leader(pid: int, number: int) -> None:
    """Send a signal to a session leader if it is still alive."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        processes.send(pid, number, lambda: pid in started)


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


KEPT = 4 * 1024 * 1024  # bytes; a flood must not fill the workbench's memory


class CommandOutput:
    """A stream of bytes of which at least the last ``KEPT`` are kept; offsets count all bytes."""

    def __init__(self) -> None:
        self._start = 0
        self._kept = bytearray()
        self._changed = asyncio.Event()
        self.before_drop: Callable[[], None] | None = None  # called before bytes are dropped

    @property
    def start(self) -> int:
        """The offset of the first kept byte."""
        return self._start

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self._start + len(self._kept)

    def append(self, data: bytes) -> None:
        """Append bytes and wake all tasks that wait for a change."""
        self._kept += data
        if len(self._kept) > 2 * KEPT:  # not each time, because every cut moves the kept bytes
            if self.before_drop is not None:
                self.before_drop()
            cut = len(self._kept) - KEPT
            del self._kept[:cut]
            self._start += cut
        self.wake()

    def wake(self) -> None:
        """Wake all tasks that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def changed(self) -> Coroutine[Any, Any, Any]:
        """Return an awaitable for the next change after this call."""
        return self._changed.wait()

    def data(self, since: int, until: int) -> bytes:
        """Return the bytes between two offsets, as far as they are kept."""
        return bytes(self._kept[max(since - self._start, 0) : max(until - self._start, 0)])

    def read(self, since: int, until: int | None = None) -> tuple[str, int]:
        """Return the text between two offsets, and the offset after it.

        Without ``until``, an incomplete character at the end is left for the next call. A note
        replaces bytes that are no longer kept. Bytes that are not UTF-8 are replaced.
        """
        final = until is not None
        until = self.end if until is None else min(until, self.end)
        since = min(max(since, 0), until)
        first = min(max(since, self._start), until)
        data = self.data(first, until)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final)
        undecoded, _ = decoder.getstate()
        if first > since:
            text = f"[... {first - since} bytes were dropped ...]\n{text}"
        return text, until - len(undecoded)


def shorten(text: str, limit: int) -> str:
    """Shorten a text to ``limit`` characters, with a note in the middle; 0 means no limit."""
    if limit == 0 or len(text) <= limit:
        return text
    head = limit // 2
    tail = limit - head
    omitted = len(text) - limit
    return f"{text[:head]}\n[... {omitted} characters omitted ...]\n{text[-tail:]}"
