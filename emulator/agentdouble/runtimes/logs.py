"""What the instances of a runtime print, kept in memory and bounded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]

_LINES = 1000
_LONGEST_LINE = 16 * 1024  # bytes


@dataclass(frozen=True)
class Line:
    """A line that an instance has printed, without its end."""

    stream: Stream
    text: str


class InstanceLog:
    """The latest lines of one instance."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=_LINES)
        self._begun: dict[Stream, bytes] = {}

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take what has been printed; ``b""`` at the end of the stream."""
        whole = self._begun.pop(stream, b"") + data
        *lines, begun = whole.split(b"\n")
        if begun and (not data or len(begun) > _LONGEST_LINE):
            lines.append(begun)
        elif begun:
            self._begun[stream] = begun
        self._lines.extend(Line(stream, line.decode(errors="replace")) for line in lines)

    def tail(self, count: int) -> list[Line]:
        """Return the last lines, the oldest first."""
        return list(self._lines)[-count:] if count > 0 else []
