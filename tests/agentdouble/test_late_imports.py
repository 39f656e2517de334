"""What is imported when it is first needed, so that commands and doubles start quickly."""

from __future__ import annotations

import subprocess
import sys

HELP = """
import sys
from agentdouble.cli import main
sys.argv = ["agentdouble", "--help"]
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def imported_by(script: str) -> set[str]:
    """Return the modules that a script has imported, which it writes to stderr at its end."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_imports_nothing_of_the_double() -> None:
    """Neither what a double is made of, nor what draws for persons where none looks."""
    heavy = {"asyncio", "httpx", "pydantic", "rich", "starlette", "uvicorn", "agentdouble.ledger"}

    assert set() == heavy & imported_by(HELP)
