"""Sessions as the double's own routes and events show them, and the events about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus

if TYPE_CHECKING:
    from agentdouble.sandbox.ended_instances import EndedInstance
    from agentdouble.sandbox.instance import Instance

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
