"""What Linux says about processes: parents that die, orphans that are left, trees that end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from agentdouble.processes.fork_server import linux


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, whatever it is doing."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Return the pids of a process's children."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants; stopped first, so that none forks meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for child in children(pid):
        kill_tree(child)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
