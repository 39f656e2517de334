"""Errors of run_code if something that it needs is missing."""

from __future__ import annotations

from agentdouble.errors.base import AgentDoubleError


class RunCodeError(AgentDoubleError):
    """run_code does not have everything that it needs to call the platform."""


class ToolIdMissingError(RunCodeError):
    """No tool id in the tool context or the environment (RUN-02)."""


class CredentialsMissingError(RunCodeError):
    """No credentials in the tool context or the environment (RUN-03)."""


_BY_VARIABLES = (
    "Is the platform running, and do PLATFORM_TOOL_HOST and PLATFORM_TOOL_SCHEME (https unless it "
    "says http) name it? 'agentdouble env' prints them for a running double."
)


class PlatformUnreachableError(RunCodeError):
    """Nothing answers at the platform's address; ``url`` is that address."""

    def __init__(self, url: str, reason: str, *, advice: str = _BY_VARIABLES) -> None:
        super().__init__(f"Nothing answers at {url} ({reason}). {advice}")
        self.url = url
