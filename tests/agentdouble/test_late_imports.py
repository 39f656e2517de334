"""Modules imported on first use, so that commands and doubles start quickly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentdouble.core.threads import import_in_thread
from tests.agentdouble.calling import TIMEOUT_S, background

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
    """Return the words that a script writes to stderr, mostly its imported modules."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_imports_nothing_of_the_double() -> None:
    """It needs no rich either, as its output is not a terminal."""
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


def test_a_double_starts_without_unused_modules() -> None:
    """Its surfaces import them on first use."""
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


def test_checking_one_surface_imports_no_other_sdk() -> None:
    """Quick checks stay quick."""
    assert set() == {"a2a", "mcp.server"} & words_of(CHECK)


def test_threads_can_import_a_circular_package_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each module runs only once."""
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "circular"
    package.mkdir()
    count = "from tests.agentdouble.test_late_imports import imported\nimported.append(__name__)\n"
    (package / "__init__.py").write_text(f"{count}from circular import one, two\n")
    (package / "one.py").write_text(f"{count}import circular.two\nfrom circular import two\n")
    (package / "two.py").write_text(f"{count}import circular\nvalue = 42\n")
    parts = [("circular",), ("circular.one", "circular"), ("circular.two",)]
    begin = threading.Barrier(12)

    def import_part(number: int) -> None:
        begin.wait(TIMEOUT_S)
        asyncio.run(import_in_thread(*parts[number % 3]))

    threads = [background(lambda number=number: import_part(number)) for number in range(12)]  # type: ignore[misc]
    for thread in threads:
        thread.result(TIMEOUT_S)

    assert ["circular", "circular.one", "circular.two"] == sorted(imported)
    assert 42 == sys.modules["circular"].two.value
    for name in imported:
        del sys.modules[name]


imported: list[str] = []
