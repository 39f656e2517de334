"""The log of a session: its last events, for GetSessionLogs."""

from __future__ import annotations

import datetime as dt
import re
from collections import deque

from agentdouble.core.clock import Clock

LINES = 1000
_LENGTH = 200
_UNUSUAL = re.compile("[^ -~]+")  # what may not be printable; the other characters of ASCII are


class SessionLog:
    """The last ``LINES`` events of a session, each with its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: deque[tuple[dt.datetime, str]] = deque(maxlen=LINES)

    def note(self, text: str) -> None:
        """Add a line; cut it after 200 characters, with three dots."""
        line = _UNUSUAL.sub(_escape, text[: 10 * _LENGTH])
        if len(line) > _LENGTH:
            line = f"{line[:_LENGTH]}..."
        self._lines.append((self._clock.now(), line))

    def text(self, limit: int = LINES) -> str:
        """Return the last ``limit`` lines, oldest first, each with its time in UTC."""
        return "".join(
            f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {line}\n"
            for at, line in list(self._lines)[-limit:]
        )


def _escape(match: re.Match[str]) -> str:
    """Escape the characters that are not printable, so that each event stays on one line."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in match[0]
    )
