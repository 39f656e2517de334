"""A process that runs the checks, and ends together with the process that waits for it.

Its standard input is its lifeline: when it closes, because of an interrupt or the death of this
process, the run interrupts itself.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from agentdouble.processes.fork_server import signals
from doublecheck.errors import ChecksCrashedError

# The module path is that of this process; it does not contain the folder of the start.
_BEGIN = (
    "import json, sys; order = json.loads(sys.stdin.readline()); sys.path[:] = order['path']; "
    "from doublecheck.runner import child_process; child_process.main(order['arguments'])"
)
_TICK_S = 0.25
_PATIENCE_S = 20.0  # seconds; an interrupted run still stops its double
_LAST_LINES = 8
_READ = 64 * 1024


class ChecksProcess:
    """A run of the checks with some pytest options; use it in a with statement.

    ``chosen`` is the number of its checks, ``ended`` the number of finished ones, and ``at`` the
    running check. ``document`` is its report, after it has arrived.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.chosen = self.ended = 0
        self.at = ""
        self.document: Mapping[str, Any] | None = None
        self._unread = b""  # stored here, because an interrupt may come between any two lines
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter)
            [sys.executable, "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env={**environ, "PY_COLORS": "0"},  # a notebook's kernel requests colours
            start_new_session=True,  # no interrupt of our group reaches it
        )
        self._begin(arguments)

    def advance(self) -> Iterator[None]:
        """Yield after each message, and several times a second, until the run is over.

        Raises ChecksCrashedError if the process ends without a report.
        """
        for line in self._lines():
            if line:
                self._take(json.loads(line))
            yield
        code = self._process.wait()
        if self.document is None:
            raise ChecksCrashedError(code, self.ended, self.chosen, self._last_lines())

    def interrupt(self) -> None:
        """Interrupt the run and wait until it has ended and its results are known.

        If it does not end in time, or at a second interrupt, it is killed.
        """
        until = time.monotonic() + _PATIENCE_S
        try:
            with suppress(BrokenPipeError):  # it died before it got its order
                self._lifeline.close()
            for line in self._lines():
                if line:
                    self._take(json.loads(line))
                elif time.monotonic() > until:
                    break
        except KeyboardInterrupt:  # after a second interrupt, do not wait any longer
            pass
        self._end()

    def __enter__(self) -> ChecksProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and not self._printed.closed:
            self.interrupt()
        self._end()

    def _begin(self, arguments: Sequence[str]) -> None:
        order = {"path": [one for one in sys.path if one], "arguments": list(arguments)}
        with suppress(BrokenPipeError):  # the process is dead, and its output says why
            self._lifeline.write(json.dumps(order).encode() + b"\n")
            self._lifeline.flush()

    def _end(self) -> None:
        """Kill the process; its fork server then ends all kernels."""
        with suppress(ProcessLookupError, PermissionError):  # macOS denies it if it is ending
            signals.send_to_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdout, self._lifeline, self._printed):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    @property
    def _lifeline(self) -> Any:
        return self._process.stdin

    def _take(self, message: Mapping[str, Any]) -> None:
        self.chosen = message.get("chosen", self.chosen)
        self.at = message.get("begun", self.at)
        self.ended += "ended" in message
        self.document = message.get("run", self.document)

    def _lines(self) -> Iterator[bytes]:
        """Yield each line that the process writes, and an empty one after a silent interval."""
        assert self._process.stdout is not None
        channel = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(channel, selectors.EVENT_READ)
            while True:
                line, ends, rest = self._unread.partition(b"\n")
                if ends:
                    self._unread = rest
                    yield line
                elif not selector.select(_TICK_S):
                    yield b""
                elif read := os.read(channel, _READ):
                    self._unread += read
                else:
                    return

    def _last_lines(self) -> list[str]:
        self._printed.seek(0)
        printed = self._printed.read().decode(errors="replace")
        return [line for line in printed.splitlines() if line.strip()][-_LAST_LINES:]
