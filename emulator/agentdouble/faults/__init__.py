"""Faults that are armed beforehand: which call of which operation meets what.

Nothing is random: a fault says by numbers which calls meet it, and it is known whether it did
happen. They meet the specified surfaces only, never ``/_emulator``, and HTTP only.
"""

from agentdouble.faults.injected import InjectedFault, injected_fault
from agentdouble.faults.layer import FaultLayer
from agentdouble.faults.plan import Faults, FaultState

__all__ = ["FaultLayer", "FaultState", "Faults", "InjectedFault", "injected_fault"]
