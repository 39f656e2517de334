"""``python -m agentdouble.sandbox.workbench FD CONFIG``: a workbench without a fork server.

FD is a listening Unix socket, CONFIG is JSON; it ends when its standard input does.
"""

from __future__ import annotations

import json
import sys

from agentdouble.processes.fork_server.processes import adopt_orphans
from agentdouble.sandbox.workbench import process

if __name__ == "__main__":
    if sys.platform == "linux":
        adopt_orphans()
    process.run("", json.loads(sys.argv[2]), int(sys.argv[1]), until_end_of=0)
