"""The fork server's parent, which ends the remaining processes if the fork server is killed.

A kernel dies when the fork server dies. Processes that the kernel has detached do not die, so the
guardian adopts and ends them. If the guardian is killed instead, the fork server ends all
processes. If both are killed at the same moment, detached processes remain, unless they are in a
process namespace.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from agentdouble.processes.fork_server import linux, processes

ASKED_TO_END = signal.SIGTERM


def stand_behind() -> None:
    """Fork; return only in the child, which becomes the fork server.

    The parent never returns. It keeps its descriptors open until no process is left.
    """
    processes.adopt_orphans()
    guardian = os.getpid()
    if server := os.fork():
        _guard(server)
        os._exit(0)
    os.setsid()  # so a signal to the guardian's group does not reach both
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
