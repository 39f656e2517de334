"""Several values of a platform's: tuples that show themselves in one piece."""

from __future__ import annotations

from doublecheck.notebook_repr import Series
from doublecheck.results import (
    AgentEvent,
    AgentSession,
    ArmedFault,
    JournalEntry,
    McpTool,
    Session,
)


class AgentEvents(Series[AgentEvent], noun="event", drawn_by="notebook.display.events.events"):
    """What users and agents said and did, in order."""

    __slots__ = ()


class AgentSessions(
    Series[AgentSession], noun="session", drawn_by="notebook.display.sessions.agent_sessions"
):
    """The sessions of a user, in API-server mode."""

    __slots__ = ()


class ArmedFaults(Series[ArmedFault], noun="fault", drawn_by="notebook.display.faults.faults"):
    """The faults of a double."""

    __slots__ = ()


class Journal(Series[JournalEntry], noun="request", drawn_by="notebook.display.journal.journal"):
    """The requests that a double served, oldest first."""

    __slots__ = ()


class McpTools(Series[McpTool], noun="tool", drawn_by="notebook.display.mcp.tools"):
    """The tools of an MCP server."""

    __slots__ = ()


class Sessions(Series[Session], noun="session", drawn_by="notebook.display.sessions.sessions"):
    """The living session instances of a double."""

    __slots__ = ()
