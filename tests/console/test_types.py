"""Type-check the console's JavaScript, whose comments declare types."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.mcp_official.suite import find_npm

TYPESCRIPT = "typescript@5.9.3"
PROJECT = Path(__file__).parent  # tsconfig.json is here

pytestmark = [pytest.mark.once, pytest.mark.slow]


def test_the_console_modules_type_check() -> None:
    """npm fetches TypeScript once."""
    npm = find_npm()
    if npm is None:
        reason = "needs npm: pip install 'agentdouble[conformance]'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    tsc = [*npm, "exec", "--yes", f"--package={TYPESCRIPT}", "--", "tsc"]

    outcome = subprocess.run([*tsc, "-p", PROJECT], capture_output=True, text=True, timeout=300)

    assert (0, "") == (outcome.returncode, outcome.stdout), outcome.stderr
