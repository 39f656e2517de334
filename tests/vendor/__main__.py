"""``python -m tests.vendor``: make the environment, and run the tests with it."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.real_clients.__main__ import CACHE
from tests.vendor.environment import ENVIRONMENT, VARIABLE

if __name__ == "__main__":
    if VARIABLE not in os.environ:
        CACHE.mkdir(parents=True, exist_ok=True)
        ENVIRONMENT.make(CACHE)
        os.environ[VARIABLE] = ENVIRONMENT.python(CACHE)
    command = [sys.executable, "-m", "pytest", "tests/vendor", *sys.argv[1:]]
    sys.exit(subprocess.run(command, check=False).returncode)
