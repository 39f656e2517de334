"""Whether Chromium's own sandbox, which holds its pages apart, is possible where we are.

It needs namespaces inside those of the session; in a container they are often refused. The
browser would end at once, so it is tried beforehand what it would try.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def is_possible() -> bool:
    """Try namespaces for users, processes and network in a child; return whether they are had."""
    if sys.platform != "linux":
        return True
    if os.geteuid() == 0:  # it refuses to run as root
        return False
    from agentdouble.processes.fork_server import linux

    child = os.fork()
    if child == 0:
        code = 1
        try:
            uid = os.geteuid()
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWPID)
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
