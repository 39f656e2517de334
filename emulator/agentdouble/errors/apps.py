"""Applications that cannot be served, and what of a call or a card breaks their contract."""

from __future__ import annotations

from collections.abc import Sequence

from agentdouble.errors.base import AgentDoubleError


class ApplicationLoadError(AgentDoubleError):
    """An application cannot be imported or served; ``spec`` is what was asked for."""

    def __init__(self, message: str, *, spec: str) -> None:
        super().__init__(message)
        self.spec = spec


class DecorationError(AgentDoubleError, TypeError):
    """A function breaks the decorator contract of section 4.6; ``decorator`` names the decorator."""

    def __init__(self, message: str, *, decorator: str) -> None:
        super().__init__(message)
        self.decorator = decorator


class ToolError(AgentDoubleError):
    """A call of an MCP tool fails though its function did not; ``tool`` is the tool's name."""

    def __init__(self, message: str, *, tool: str) -> None:
        super().__init__(message)
        self.tool = tool


class ToolArgumentsError(ToolError):
    """A tool cannot take the arguments of a call; the message names each field."""


class ToolResultError(ToolError):
    """A tool returned what it did not announce, or what is no JSON."""


class CardError(AgentDoubleError, ValueError):
    """An agent card, or the URL it is made for, lacks what it must have; ``fields`` names it."""

    def __init__(self, message: str, *, fields: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class TurnTimeoutError(AgentDoubleError):
    """What an A2A executor does took longer than it may; ``limit_s`` is how long that is."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"It did not end within {limit_s:g} s.")
        self.limit_s = limit_s
