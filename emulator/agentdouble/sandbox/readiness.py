"""How far the start of a session is, as its Status shows it (U-TOOL-SESSION-READY)."""

from __future__ import annotations

from typing import Literal

from agentdouble.core import ledger

Stage = Literal["Creating", "Starting", "Ready", "Failed"]

_STARTING: tuple[Stage, ...] = ("Creating", "Starting", "Ready")
_FAILING: tuple[Stage, ...] = ("Creating", "Failed")


class Readiness:
    """The stages of a session's start; a client that reads one is shown the next one after it.

    The start takes no time: a session that is used is ready at once, unless its start fails.
    """

    def __init__(self) -> None:
        self._stages: tuple[Stage, ...] = ()  # those to come; none of a session begun by its use

    @property
    def failed(self) -> bool:
        """Whether the start fails, even if its stage is not yet Failed."""
        return self._stages[-1:] == ("Failed",)

    @property
    def stage(self) -> Stage:
        """The current stage."""
        if self.failed:
            return self._stages[0]
        if len(self._stages) > 1 and ledger.choose("U-TOOL-SESSION-READY") == "creating":
            return self._stages[0]
        return "Ready"

    def begin(self, *, fails: bool = False) -> bool:
        """Begin the start; return whether the session had not started before."""
        if self._stages:
            return False
        self._stages = _FAILING if fails else _STARTING
        return True

    def advance(self) -> None:
        """Go on to the next stage, if there is one."""
        self._stages = self._stages[1:] or self._stages

    def finish(self) -> None:
        """Be ready at once, unless the start fails."""
        if not self.failed:
            self._stages = ("Ready",)
