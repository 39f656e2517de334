"""Faults that are armed beforehand: for which call of which operation, and what happens to it.

Nothing is random: a fault says by numbers which calls it is for, and counts those to which it did
happen; a stream that ended before its cut was not cut. Faults are for the specified surfaces only,
never for ``/_emulator``, and for HTTP only, not for WebSockets and gRPC.

They stand in front of the surfaces. So the journal has what the client got, and a response that is
lost was given by a surface that knows nothing of it. What happens to code while it runs is a
context variable that the sandbox reads.
"""

from agentdouble.faults.effects import InjectedFault, injected_fault
from agentdouble.faults.layer import FaultLayer
from agentdouble.faults.plan import Faults, FaultState

__all__ = ["FaultLayer", "FaultState", "Faults", "InjectedFault", "injected_fault"]
