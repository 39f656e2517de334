"""Faults that are armed in advance: for which call of which operation, and what happens to it.

Nothing is random: a fault states by number which calls it applies to, and counts the calls that it
affected. A stream that ended before its cut does not count. Faults are only for the specified
surfaces, never for ``/_emulator``, and only for HTTP, not for WebSockets.

``parsing`` reads the ``kinds`` of faults. ``middleware`` applies the ``effects`` in front of the
surfaces. So the journal has what the client got, and a surface knows nothing of a lost response. A
fault that happens to running code or to a start (``during_code``) is a context variable that the
sandbox reads.
"""

from agentdouble.faults.during_code import InjectedFault, injected_fault, injecting

__all__ = ["InjectedFault", "injected_fault", "injecting"]
