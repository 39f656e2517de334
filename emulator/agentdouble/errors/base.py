"""The base class of all exceptions of agentdouble."""

from __future__ import annotations

from agentdouble.tracebacks import ShownShort


class AgentDoubleError(ShownShort, Exception):
    """The base of every exception that agentdouble raises on purpose."""
