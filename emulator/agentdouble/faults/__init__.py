"""Faults that are armed beforehand: which call of which operation meets what.

Nothing is random: a fault says by numbers which calls meet it, and it is known whether it did
happen. They meet the specified surfaces only, never ``/_emulator``, and HTTP only.
"""

from agentdouble.faults.layer import FaultLayer
from agentdouble.faults.mishaps import Mishap, mishap
from agentdouble.faults.plan import Faults, FaultState

__all__ = ["FaultLayer", "FaultState", "Faults", "Mishap", "mishap"]
