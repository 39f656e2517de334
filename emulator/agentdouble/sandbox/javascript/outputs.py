"""Reads the engine's pipe: text, and between the text the frames that boot.js writes.

All output goes through one pipe, which keeps its order. A full pipe makes the engine wait, so a
flood loses nothing. Text is collected for 20 ms, because otherwise 20,000 lines would be 20,000
messages. A stream stops at the same limit as in a Python kernel.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Callable
from typing import Any

from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT

Send = Callable[[str, dict[str, Any]], None]

_DELAY_S = 0.02
_ENOUGH = 256 * 1024


class Streams:
    """Collects the text for stdout and stderr, and sends it as Jupyter messages."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._name = "stdout"
        self._parts: list[str] = []
        self._size = 0
        self._left: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def renew(self) -> None:
        """Reset the limits of the streams, because an execution begins."""
        self._left.clear()

    def write(self, name: str, text: str) -> None:
        """Add text to a stream, up to the stream's limit."""
        left = self._left.get(name, OUTPUT_LIMIT)
        text = text[:left]
        self._left[name] = left - len(text)
        if not text:
            return
        if name != self._name:
            self.flush()
            self._name = name
        self._parts.append(text)
        self._size += len(text)
        if self._size >= _ENOUGH:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY_S, self.flush)

    def flush(self) -> None:
        """Send the collected text."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parts:
            text = "".join(self._parts)
            self._parts, self._size = [], 0
            self._send("stream", {"name": self._name, "text": text})


class FrameReader:
    """Splits the pipe's data: calls ``on_text`` with text, ``on_frame`` with kind and payload."""

    def __init__(
        self, token: str, on_text: Callable[[str], None], on_frame: Callable[[str, str], None]
    ) -> None:
        self._mark = b"\0" + token.encode()
        self._header = re.compile(re.escape(self._mark) + rb" (\w+) (\d+)\n")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._on_text = on_text
        self._on_frame = on_frame
        self._rest = bytearray()
        self._needed = 0

    def feed(self, data: bytes) -> None:
        """Handle data that was read from the pipe."""
        self._rest += data
        if len(self._rest) < self._needed:  # do not parse a large frame before it is complete
            return
        data, self._needed = bytes(self._rest), 0
        start = 0
        while (mark := data.find(self._mark, start)) >= 0:
            self._text(data[start:mark])
            start = mark
            end = self._frame(data, mark)
            if end is None:
                break
            start = end
        else:
            kept = _overlap(data[start:], self._mark)
            self._text(data[start : len(data) - kept])
            start = len(data) - kept
        self._rest = bytearray(data[start:])

    def _frame(self, data: bytes, start: int) -> int | None:
        """Handle the frame at ``start`` and return its end, or None if it is incomplete."""
        header = self._header.match(data, start)
        if header is None:
            return None
        end = header.end() + int(header[2])
        if end > len(data):
            self._needed = end - start
            return None
        self._on_frame(header[1].decode(), data[header.end() : end].decode("utf-8", "replace"))
        return end

    def _text(self, data: bytes) -> None:
        if data:
            self._on_text(self._decoder.decode(data))


def _overlap(data: bytes, mark: bytes) -> int:
    """Return how many of the last bytes can be the beginning of a mark."""
    start = data.rfind(b"\0", max(0, len(data) - len(mark)))
    return len(data) - start if start >= 0 and mark.startswith(data[start:]) else 0
