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


def test_public_names() -> None:
    """They are sorted and can be imported."""
    assert NAMES == doublecheck.__all__ == dir(doublecheck)
    assert NAMES == [getattr(doublecheck, name).__name__ for name in NAMES]


def test_names_of_results() -> None:
    results = import_module("doublecheck.results")

    assert RESULTS == results.__all__ == dir(results)
    assert RESULTS == [getattr(results, name).__name__ for name in results.__all__]


def test_importing_the_package_is_lazy() -> None:
    """A name imports its module on first use."""
    output = _python(
        "import sys, doublecheck; print(*sorted(m for m in sys.modules if 'doublec' in m))"
    )

    assert "doublecheck doublecheck.core doublecheck.core.lazy_names\n" == output


def test_a_light_install_has_clients_but_no_double() -> None:
    """connect() names the pip command."""
    expected = "The double is not installed. Install it: pip install 'agentdouble[emulator]'\n"

    assert expected == _python(_LIGHT)


def _python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
