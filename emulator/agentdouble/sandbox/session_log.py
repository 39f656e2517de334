"""What happened in one session, line by line: made, ran, paused, ended."""

from __future__ import annotations

import datetime as dt
from collections import deque

from agentdouble.clock import Clock

LINES = 1000
_LENGTH = 200


class SessionLog:
    """The last ``LINES`` things that happened, each with its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: deque[tuple[dt.datetime, str]] = deque(maxlen=LINES)

    def note(self, text: str) -> None:
        """Add a line; what is longer than 200 characters is cut, with three dots."""
        line = "".join(map(_printable, text[: 10 * _LENGTH]))
        if len(line) > _LENGTH:
            line = f"{line[:_LENGTH]}..."
        self._lines.append((self._clock.now(), line))

    def text(self, limit: int = LINES) -> str:
        """Return the last ``limit`` lines, oldest first, each with its time in UTC."""
        return "".join(
            f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {line}\n"
            for at, line in list(self._lines)[-limit:]
        )


def _printable(character: str) -> str:
    """Keep a line one line, whatever code is in it."""
    return character if character.isprintable() else character.encode("unicode_escape").decode()
