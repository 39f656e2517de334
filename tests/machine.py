"""What tests need of the machine that they run on.

A test whose need is missing is skipped and says what it needs. ``.ci/run``, whose machine has
everything, sets REQUIRE_ALL: then the test fails, so that none is lost unnoticed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from agentdouble.processes import isolation
from agentdouble.sandbox.browser import chromium

REQUIRE_ALL = "REQUIRE_ALL"


def lack(reason: str) -> NoReturn:
    """Skip a test because of something that this machine lacks, or fail it."""
    (pytest.fail if REQUIRE_ALL in os.environ else pytest.skip)(reason)


def require(*needs: str) -> None:
    """Skip or fail a test if a measure of isolation or a program is missing."""
    for need in needs:
        if need in isolation.MEASURES:
            why_not = isolation.find_out().measures[need].why_not
            if why_not is not None:
                lack(f"needs the isolation of {need}: {why_not}")
        elif shutil.which(need) is None:
            lack(f"needs the program {need}")


def open_to_others(directory: Path) -> Path:
    """Let all users read a directory, and pass to it.

    pytest closes its own to other users. A runtime of root's double runs as another user, who needs
    the way to its program where no namespace has a view of files for it.
    """
    for above in directory.parents:
        if above.stat().st_uid == os.geteuid():
            above.chmod(above.stat().st_mode | 0o011)
    directory.chmod(0o755)
    return directory


def require_browser() -> str:
    """Return the path of Chromium, or skip or fail the test."""
    return chromium.find(None) or lack(f"needs Chromium: {chromium.INSTALL}")
