from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import doublecheck

pytestmark = pytest.mark.smoke

NAMES = [
    "AsyncPlatform",
    "Credentials",
    "DoubleCheckError",
    "Platform",
    "PlatformConfig",
    "Secret",
    "Target",
    "calibrate",
    "check",
    "connect",
    "connect_async",
    "prepared_sandbox",
    "show",
    "twin",
    "unknowns",
]

RESULTS = [
    "A2aAnswer",
    "A2aClient",
    "AgentEvent",
    "AgentEvents",
    "AgentSession",
    "AgentSessions",
    "ArmedFault",
    "AsyncA2aClient",
    "AsyncBrowser",
    "AsyncMcpClient",
    "AsyncPlatformSandbox",
    "BashResult",
    "Browser",
    "BrowserInfo",
    "Check",
    "Clause",
    "CodeError",
    "CodeResult",
    "Comparison",
    "Completion",
    "Difference",
    "Exchange",
    "ExitCode",
    "Finding",
    "Findings",
    "Journal",
    "JournalEntry",
    "LiveOutput",
    "McpClient",
    "McpResult",
    "McpTool",
    "McpTools",
    "Output",
    "PlatformSandbox",
    "Report",
    "Reports",
    "Session",
    "SessionSnapshot",
    "Sessions",
    "StreamEvent",
    "Unknown",
    "Unknowns",
]

_LIGHT = """
import sys

for name in ("starlette", "uvicorn", "pydantic", "pydantic_settings", "jupyter_client", "zmq"):
    sys.modules[name] = None

import doublecheck

platform = doublecheck.Platform(doublecheck.Target("http://127.0.0.1:1"))
platform.close()
try:
    doublecheck.connect()
except doublecheck.errors.MissingExtraError as error:
    print(error)
"""


def test_the_public_names_are_these() -> None:
    """They are sorted, and every one of them can be imported."""
    assert NAMES == doublecheck.__all__ == dir(doublecheck)
    assert NAMES == [getattr(doublecheck, name).__name__ for name in NAMES]


def test_results_are_these() -> None:
    """All of them have their own names."""
    results = import_module("doublecheck.results")

    assert RESULTS == results.__all__ == dir(results)
    assert RESULTS == [getattr(results, name).__name__ for name in results.__all__]


def test_importing_the_package_imports_nothing_of_it() -> None:
    """What is behind a name is imported when the name is first used."""
    output = _python(
        "import sys, doublecheck; print(*sorted(m for m in sys.modules if 'doublec' in m))"
    )

    assert "doublecheck doublecheck.core doublecheck.core.lazy_names\n" == output


def test_a_light_install_is_a_client_and_says_what_a_double_needs() -> None:
    """Without the extra there are clients; connect() names the pip command."""
    expected = "The double is not installed. Install it: pip install 'agentdouble[emulator]'\n"

    assert expected == _python(_LIGHT)


def _python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
