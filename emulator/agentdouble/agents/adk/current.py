"""The run in whose context code of ADK asks its services."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agentdouble.agents.adk import events
from agentdouble.agents.framework import FrameworkEvent, Host, RunEvent
from agentdouble.errors import RunEndedError


class CurrentRun:
    """A run: the host whose sessions it uses, and the event that it stored last."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._stored: FrameworkEvent | None = None

    def append(self, session: Any, event: Any) -> None:
        """Store an event in a session."""
        self._stored = stored = events.to_store(event)
        self.host.append(session.app_name, session.user_id, session.id, stored)

    def to_send(self, event: Any) -> RunEvent:
        """Return an event for the client; most were just stored, and are not dumped again."""
        stored, self._stored = self._stored, None
        known = stored is not None and stored.value is event
        json = stored.json if stored is not None and known else events.to_send(event)
        return RunEvent(json, bool(event.actions.artifact_delta))


_run: ContextVar[CurrentRun] = ContextVar("adk_run")


def enter(host: Host) -> CurrentRun:
    """Let the services ask this host in this task, and let ADK take its time from it."""
    from google.adk.platform import time

    run = CurrentRun(host)
    _run.set(run)
    time.set_time_provider(host.now)
    return run


def current() -> CurrentRun:
    """Return this run; raise RunEndedError outside of runs."""
    try:
        return _run.get()
    except LookupError:
        raise RunEndedError(
            "A service of the runner is asked outside of a run. Ask it in a callback or a tool, "
            "whose context has it.",
            app="",
        ) from None
