"""A session: the key of its instance, its log, how it is shown, and the events about it."""

from __future__ import annotations

import datetime as dt
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.errors import SandboxError

if TYPE_CHECKING:
    from agentdouble.sandbox.ended_instances import EndedInstance
    from agentdouble.sandbox.instance import Instance

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


Happened = Literal["begun", "busy", "idle", "paused", "resumed", "ttl"]


def living(instance: Instance, clock: Clock) -> dict[str, Any]:
    """Return how a living instance is shown."""
    used = instance.used
    return {
        "SessionId": instance.id,
        "UserSessionId": instance.key.user_session_id,
        "ToolId": instance.key.tool_id,
        "state": instance.state,
        "busy": instance.busy,
        "created_at": instance.created_at.isoformat(),
        "deadline": instance.deadline.isoformat(),
        "remaining_s": (instance.deadline - clock.now()).total_seconds(),
        "executions": instance.executions,
        "pids": list(instance.pids),
        "home": None if instance.home is None else str(instance.home),
        "memory_bytes": None if used is None else used.memory,
        "cpu_s": None if used is None else used.cpu_s,
    }


def ended(instance: EndedInstance) -> dict[str, Any]:
    """Return how an instance that has ended is shown."""
    return {
        "SessionId": instance.id,
        "UserSessionId": instance.key.user_session_id,
        "ToolId": instance.key.tool_id,
        "state": "destroyed",
        "ended_at": instance.at.isoformat(),
        "reason": instance.reason,
        "executions": instance.executions,
    }


class SessionEvents:
    """Publishes what happens to session instances; callers look at ``bus.watched`` first."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self.bus = bus
        self._clock = clock

    def publish(self, instance: Instance, happened: Happened) -> None:
        """Publish what happened to a living instance."""
        if instance.end_reason is None:  # the end was the last event of its session
            self.bus.publish(
                "session", instance.id, happened, lambda: living(instance, self._clock)
            )

    def ended(self, instance: EndedInstance) -> None:
        """Publish the end of an instance."""
        self.bus.publish("session", instance.id, "ended", lambda: ended(instance))
