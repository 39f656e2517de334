"""Run a JavaScript kernel where there is no fork server: ``-f CONNECTION_FILE [JSON]``."""

from __future__ import annotations

import json
import sys

from agentdouble.sandbox.javascript import kernel

if __name__ == "__main__":
    kernel.run(sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
