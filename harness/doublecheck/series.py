"""Several values of a platform's: tuples that show themselves in one piece."""

from __future__ import annotations

from doublecheck.results import (
    AgentEvent,
    AgentSession,
    ArmedFault,
    JournalEntry,
    McpTool,
    Session,
)
from doublecheck.showing import Series


class AgentEvents(Series[AgentEvent], noun="event", drawn_by="display.events.events"):
    """What users and agents said and did, in order."""

    __slots__ = ()


class AgentSessions(
    Series[AgentSession], noun="session", drawn_by="display.agent_sessions.sessions"
):
    """The sessions of a user, in API-server mode."""

    __slots__ = ()


class ArmedFaults(Series[ArmedFault], noun="fault", drawn_by="display.faults.faults"):
    """The faults of a double."""

    __slots__ = ()


class Journal(Series[JournalEntry], noun="request", drawn_by="display.journal.journal"):
    """The requests that a double served, oldest first."""

    __slots__ = ()


class McpTools(Series[McpTool], noun="tool", drawn_by="display.mcp.tools"):
    """The tools of an MCP server."""

    __slots__ = ()


class Sessions(Series[Session], noun="session", drawn_by="display.sessions.sessions"):
    """The living session instances of a double."""

    __slots__ = ()
