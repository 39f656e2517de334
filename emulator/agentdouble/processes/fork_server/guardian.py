"""The fork server's parent, which ends what is left when its child is killed.

A kernel that loses the fork server dies by itself; what it had detached does not, and comes here. If
this process is killed instead, the fork server ends everything. If both are killed at one moment, what
is detached stays where there are no process namespaces.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from agentdouble.processes.fork_server import linux, processes

ASKED_TO_END = signal.SIGTERM


def stand_behind() -> None:
    """Fork: return in the child, which is the fork server; the parent never returns.

    The parent keeps what is open here open until nothing is left.
    """
    processes.adopt_orphans()
    guardian = os.getpid()
    if server := os.fork():
        _guard(server)
        os._exit(0)
    os.setsid()  # a signal to the guardian's group is not for both
    linux.prctl(linux.PR_SET_PDEATHSIG, ASKED_TO_END)
    if os.getppid() != guardian:
        os._exit(1)


def _guard(server: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(ChildProcessError):
        while os.wait()[0] != server:
            pass
    processes.end_children()
