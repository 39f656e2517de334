"""What every exception of agentdouble's is."""

from __future__ import annotations

from typing import Any

from agentdouble.tracebacks import ShownShort


class AgentDoubleError(ShownShort, Exception):
    """The base of every exception that agentdouble raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as it is: what it says is not what its class is called with."""
        return _unfinished, (type(self), self.args), self.__dict__


def _unfinished(kind: type[AgentDoubleError], args: tuple[Any, ...]) -> AgentDoubleError:
    return kind.__new__(kind, *args)
