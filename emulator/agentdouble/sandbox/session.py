"""A session: the key of its instance, and the log of what happened in it."""

from __future__ import annotations

import datetime as dt
from collections import deque
from dataclasses import dataclass

from agentdouble.core.clock import Clock
from agentdouble.errors import SandboxError

LINES = 1000
_LENGTH = 200


@dataclass(frozen=True)
class InstanceKey:
    """The key of a session's instance: the tool id and the tool-user session id."""

    tool_id: str
    user_session_id: str


class SessionLog:
    """The last ``LINES`` events of a session, each with its time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: deque[tuple[dt.datetime, str]] = deque(maxlen=LINES)

    def note(self, text: str) -> None:
        """Add a line; cut it after 200 characters, with three dots."""
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
    """Escape a character that is not printable, so that each event stays on one line."""
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def busy_error(user_session_id: str) -> SandboxError:
    """Return the error for a session that runs code, where a second call is refused."""
    message = f"The instance of session {user_session_id!r} is running code."
    return SandboxError(message, "InvalidResource.Busy", 409)


def paused_error(user_session_id: str) -> SandboxError:
    """Return the error for a session that is paused."""
    message = f"The instance of session {user_session_id!r} is paused: resume it first."
    return SandboxError(message, "InvalidResource.Paused", 409)
