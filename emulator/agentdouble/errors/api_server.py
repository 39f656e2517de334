"""Requests to the API server that are refused, and agents that do not do their part."""

from __future__ import annotations

from typing import Any

from agentdouble.errors.base import AgentDoubleError


class ApiError(AgentDoubleError):
    """A request to the API server is refused; ``detail`` is what the answer's body says."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail


class SessionNotFoundError(ApiError):
    """There is no session of that id, or it has been deleted meanwhile."""

    def __init__(self, detail: str) -> None:
        super().__init__(404, detail)


class AgentError(AgentDoubleError):
    """An agent, or an agents directory, does not do its part; ``app`` is the application's name."""

    def __init__(self, message: str, *, app: str) -> None:
        super().__init__(message)
        self.app = app


class AgentNotFoundError(AgentError):
    """The agents directory has no application of that name."""


class AgentLoadError(AgentError):
    """An application of the agents directory does not import, or exposes no agent."""


class AgentYieldError(AgentError, TypeError):
    """An agent yielded, or put into its state, what no event can carry."""


class RunEndedError(AgentError):
    """An agent goes on asking for its session after its run has ended."""
