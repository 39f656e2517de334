from __future__ import annotations

import subprocess
import sys

import doublecheck

NAMES = [
    "A2aAnswer",
    "A2aClient",
    "AgentEvent",
    "AgentEvents",
    "AgentSession",
    "AgentSessions",
    "AnswerError",
    "ArgumentError",
    "ArmedFault",
    "AsyncA2aClient",
    "AsyncBrowser",
    "AsyncMcpClient",
    "AsyncPlatform",
    "BashResult",
    "Browser",
    "BrowserInfo",
    "CalibrationError",
    "Check",
    "ChecksCrashedError",
    "Clause",
    "ClauseError",
    "ClosedError",
    "CodeError",
    "CodeResult",
    "Comparison",
    "Completion",
    "ConfigurationError",
    "Credentials",
    "CredentialsMissingError",
    "CredentialsRefusedError",
    "Difference",
    "DoubleCheckError",
    "EmulatorCommandError",
    "Exchange",
    "FaultError",
    "Finding",
    "Findings",
    "FolderError",
    "FrozenLoopError",
    "InterruptedCalibrationError",
    "InterruptedChecksError",
    "InterruptedRunError",
    "InterruptedTwinError",
    "Journal",
    "JournalEntry",
    "LiveOutput",
    "McpClient",
    "McpResult",
    "McpTool",
    "McpTools",
    "MissingExtraError",
    "NoAnswerError",
    "NotADoubleError",
    "NotCheckedError",
    "Output",
    "Platform",
    "PlatformConfig",
    "RecordingError",
    "References",
    "RefusedError",
    "Report",
    "ReportError",
    "Reports",
    "SaveError",
    "Secret",
    "Session",
    "Sessions",
    "StreamEvent",
    "Target",
    "TargetError",
    "UnexpectedHostError",
    "Unknown",
    "Unknowns",
    "UnreachableError",
    "UnseenRequestError",
    "UntrustedError",
    "WrongAddressError",
    "calibrate",
    "check",
    "connect",
    "connect_async",
    "show",
    "twin",
    "unknowns",
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
except doublecheck.MissingExtraError as error:
    print(error)
"""


def test_the_public_names_are_these() -> None:
    """They are sorted, and every one of them can be imported."""
    assert NAMES == doublecheck.__all__ == dir(doublecheck)
    assert NAMES == [getattr(doublecheck, name).__name__ for name in NAMES]


def test_importing_the_package_imports_nothing_of_it() -> None:
    """What is behind a name is imported when the name is first used."""
    shown = _python("import sys, doublecheck; print(*(m for m in sys.modules if 'doublec' in m))")

    assert "doublecheck\n" == shown


def test_a_light_install_is_a_client_and_says_what_a_double_needs() -> None:
    """Without the extra there are clients; connect() names the pip command."""
    expected = "The double is not installed. Install it: pip install 'agentdouble[emulator]'\n"

    assert expected == _python(_LIGHT)


def _python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
