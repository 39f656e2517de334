"""The events about sessions, and how sessions are shown in them and at ``/_emulator/sessions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.sandbox.ended_sessions import EndedSession
from agentdouble.sandbox.session import SandboxSession

Happened = Literal["begun", "busy", "idle", "paused", "resumed", "ttl"]


def living(session: SandboxSession, clock: Clock) -> dict[str, Any]:
    """Return how a living session is shown."""
    used, processes = session.used, session.processes
    return {
        "SessionId": session.id,
        "UserSessionId": session.key.user_session_id,
        "ToolId": session.key.tool_id,
        **({} if processes.node is None else {"node": processes.node}),
        "state": session.lifetime.state,
        "busy": session.turn.busy,
        "created_at": session.created_at.isoformat(),
        "deadline": session.lifetime.deadline.isoformat(),
        "remaining_s": (session.lifetime.deadline - clock.now()).total_seconds(),
        "executions": session.executions,
        "pids": list(processes.pids),
        "home": None if processes.home is None else str(processes.home),
        "memory_bytes": None if used is None else used.memory,
        "cpu_s": None if used is None else used.cpu_s,
    }


def ended(session: EndedSession, snapshot_id: str | None = None) -> dict[str, Any]:
    """Return how a session that has ended is shown.

    If it has expired and wakes with the snapshot ``snapshot_id``, it is asleep.
    """
    asleep = session.has_expired and snapshot_id is not None
    return {
        "SessionId": session.id,
        "UserSessionId": session.key.user_session_id,
        "ToolId": session.key.tool_id,
        "state": "asleep" if asleep else "destroyed",
        **({"SnapshotId": snapshot_id} if asleep else {}),
        "ended_at": session.at.isoformat(),
        "reason": session.reason,
        "executions": session.executions,
    }


class SessionEvents:
    """Publishes what happens to sessions, if somebody listens."""

    def __init__(self, bus: EventBus, clock: Clock, asleep: Callable[[str], str | None]) -> None:
        self._asleep = asleep  # the id of the snapshot with which an expired session wakes
        self._bus = bus
        self._clock = clock

    def publish(self, session: SandboxSession, happened: Happened) -> None:
        """Publish what happened to a living session."""
        if self._bus.watched and session.end_reason is None:  # the end is the last event
            self._bus.publish("session", session.id, happened, lambda: living(session, self._clock))

    def ended(self, session: EndedSession) -> None:
        """Publish the end of a session."""
        if self._bus.watched:
            self._bus.publish(
                "session", session.id, "ended", lambda: ended(session, self._asleep(session.id))
            )
