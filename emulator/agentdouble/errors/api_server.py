"""Errors of refused requests to the API server, and of agents that break their contract."""

from __future__ import annotations

from typing import Any

from agentdouble.errors.base import AgentDoubleError


class ApiError(AgentDoubleError):
    """A request to the API server is refused; ``detail`` is the detail in the answer's body."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail


class SessionNotFoundError(ApiError):
    """There is no session of that id, or it was deleted meanwhile."""

    def __init__(self, detail: str) -> None:
        super().__init__(404, detail)


class AgentError(AgentDoubleError):
    """An agent or an agents directory breaks its contract; ``app`` is the application's name."""

    def __init__(self, message: str, *, app: str) -> None:
        super().__init__(message)
        self.app = app


class AgentNotFoundError(AgentError):
    """The agents directory has no application of that name."""


class AgentLoadError(AgentError):
    """An application of the agents directory cannot be imported, or has no agent."""


class AgentYieldError(AgentError, TypeError):
    """An agent yielded, or put into its state, a value that no event can carry."""


class RunEndedError(AgentError):
    """An agent uses its session after its run has ended."""
