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


def words_of(script: str) -> set[str]:
    """Return what a script writes to stderr at its end: the modules it has imported, mostly."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_imports_nothing_of_the_double() -> None:
    """Neither what a double is made of, nor what draws for persons where none looks."""
    heavy = {
        "asyncio",
        "httpx",
        "pydantic",
        "rich",
        "starlette",
        "uvicorn",
        "agentdouble.core.ledger",
    }

    assert set() == heavy & words_of(HELP)


START = """
import sys
import urllib.request
from agentdouble import Emulator
with Emulator() as double:
    urllib.request.urlopen(double.url + "/ping").close()
    print(*sys.modules, file=sys.stderr)
"""
LATE = {
    # of others
    "a2a",
    "asyncpg",
    "cryptography",
    "google.protobuf",
    "httpcore",
    "httpx",
    "jupyter_client",
    "mcp",
    "playwright",
    "prometheus_client",
    "psutil",
    "rich",
    "sqlalchemy",
    "trustme",
    "yaml",
    "zmq",
    # ours
    "agentdouble.api_server.server",
    "agentdouble.control_plane.actions",
    "agentdouble.runtimes.hosting",
    "agentdouble.sandbox.data_plane.routes",
}


def test_a_double_starts_without_what_nobody_has_used() -> None:
    """Its surfaces import that when they are first asked."""
    assert set() == LATE & words_of(START)


CHECK = """
import sys
from doublecheck.cli import main
sys.argv = ["doublecheck", "run", "-k", "PRB-01"]
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def test_a_check_of_one_surface_imports_no_sdk_of_another() -> None:
    """A quick check stays quick."""
    assert set() == {"a2a", "mcp.server"} & words_of(CHECK)
