"""Errors of applications that cannot be served, and of calls or cards that break a contract."""

from __future__ import annotations

from collections.abc import Sequence

from agentdouble.errors.base import AgentDoubleError


class ApplicationLoadError(AgentDoubleError):
    """An application cannot be imported or served; ``spec`` is the application as given."""

    def __init__(self, message: str, *, spec: str) -> None:
        super().__init__(message)
        self.spec = spec


class DecorationError(AgentDoubleError, TypeError):
    """A function breaks the decorator contract of section 4.6; ``decorator`` is its name."""

    def __init__(self, message: str, *, decorator: str) -> None:
        super().__init__(message)
        self.decorator = decorator


class CardError(AgentDoubleError, ValueError):
    """An agent card, or the URL it is made for, lacks required fields; ``fields`` names them."""

    def __init__(self, message: str, *, fields: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class TurnTimeoutError(AgentDoubleError):
    """A turn of an A2A executor took longer than ``limit_s`` seconds."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"It did not end within {limit_s:g} s.")
        self.limit_s = limit_s
