"""doublecheck: the harness that puts a platform, or its double, through the same checks.

The public names are imported when they are first used, so that a test run which loads the
pytest plugin pays nothing for the rest.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from doublecheck.api.calibrate import calibrate
    from doublecheck.api.check import check
    from doublecheck.api.twin import twin
    from doublecheck.api.unknowns import unknowns
    from doublecheck.calibration.findings import Finding, Findings
    from doublecheck.client._async.a2a import AsyncA2aClient
    from doublecheck.client._async.browser import AsyncBrowser
    from doublecheck.client._async.mcp import AsyncMcpClient
    from doublecheck.client._async.platform import AsyncPlatform
    from doublecheck.client._sync.a2a import A2aClient
    from doublecheck.client._sync.browser import Browser
    from doublecheck.client._sync.mcp import McpClient
    from doublecheck.client._sync.platform import Platform
    from doublecheck.client.connect import connect, connect_async
    from doublecheck.comparing.differences import Difference
    from doublecheck.comparing.references import References
    from doublecheck.contracts.clauses import Clause
    from doublecheck.contracts.run_result import Check
    from doublecheck.errors import (
        AnswerError,
        ArgumentError,
        CalibrationError,
        ChecksCrashedError,
        ClauseError,
        ClosedError,
        ConfigurationError,
        CredentialsMissingError,
        CredentialsRefusedError,
        DoubleCheckError,
        EmulatorCommandError,
        FaultError,
        FolderError,
        FrozenLoopError,
        InterruptedCalibrationError,
        InterruptedChecksError,
        InterruptedRunError,
        InterruptedTwinError,
        MissingExtraError,
        NoAnswerError,
        NotADoubleError,
        NotCheckedError,
        RecordingError,
        RefusedError,
        ReportError,
        SaveError,
        TargetError,
        UnexpectedHostError,
        UnreachableError,
        UnseenRequestError,
        UntrustedError,
        WrongAddressError,
    )
    from doublecheck.fixtures import PlatformConfig
    from doublecheck.ledger import Unknown, Unknowns
    from doublecheck.live import Completion, LiveOutput
    from doublecheck.notebook.live_display import show
    from doublecheck.reports.report import Report, Reports
    from doublecheck.results import (
        A2aAnswer,
        AgentEvent,
        AgentSession,
        ArmedFault,
        BashResult,
        BrowserInfo,
        CodeError,
        CodeResult,
        JournalEntry,
        McpResult,
        McpTool,
        Output,
        Session,
        StreamEvent,
    )
    from doublecheck.secret import Secret
    from doublecheck.series import AgentEvents, AgentSessions, Journal, McpTools, Sessions
    from doublecheck.target.target import Credentials, Target
    from doublecheck.twins.comparison import Comparison
    from doublecheck.wire.exchanges import Exchange

_HOMES = {
    "A2aAnswer": "results",
    "A2aClient": "client._sync.a2a",
    "AgentEvent": "results",
    "AgentEvents": "series",
    "AgentSession": "results",
    "AgentSessions": "series",
    "AnswerError": "errors",
    "ArgumentError": "errors",
    "ArmedFault": "results",
    "AsyncA2aClient": "client._async.a2a",
    "AsyncBrowser": "client._async.browser",
    "AsyncMcpClient": "client._async.mcp",
    "AsyncPlatform": "client._async.platform",
    "BashResult": "results",
    "Browser": "client._sync.browser",
    "BrowserInfo": "results",
    "CalibrationError": "errors",
    "Check": "contracts.run_result",
    "ChecksCrashedError": "errors",
    "Clause": "contracts.clauses",
    "ClauseError": "errors",
    "ClosedError": "errors",
    "CodeError": "results",
    "CodeResult": "results",
    "Comparison": "twins.comparison",
    "Completion": "live",
    "ConfigurationError": "errors",
    "Credentials": "target.target",
    "CredentialsMissingError": "errors",
    "CredentialsRefusedError": "errors",
    "Difference": "comparing.differences",
    "DoubleCheckError": "errors",
    "EmulatorCommandError": "errors",
    "Exchange": "wire.exchanges",
    "FaultError": "errors",
    "Finding": "calibration.findings",
    "Findings": "calibration.findings",
    "FolderError": "errors",
    "FrozenLoopError": "errors",
    "InterruptedCalibrationError": "errors",
    "InterruptedChecksError": "errors",
    "InterruptedRunError": "errors",
    "InterruptedTwinError": "errors",
    "Journal": "series",
    "JournalEntry": "results",
    "LiveOutput": "live",
    "McpClient": "client._sync.mcp",
    "McpResult": "results",
    "McpTool": "results",
    "McpTools": "series",
    "MissingExtraError": "errors",
    "NoAnswerError": "errors",
    "NotADoubleError": "errors",
    "NotCheckedError": "errors",
    "Output": "results",
    "Platform": "client._sync.platform",
    "PlatformConfig": "fixtures",
    "RecordingError": "errors",
    "References": "comparing.references",
    "RefusedError": "errors",
    "Report": "reports.report",
    "ReportError": "errors",
    "Reports": "reports.report",
    "SaveError": "errors",
    "Secret": "secret",
    "Session": "results",
    "Sessions": "series",
    "StreamEvent": "results",
    "Target": "target.target",
    "TargetError": "errors",
    "UnexpectedHostError": "errors",
    "Unknown": "ledger",
    "Unknowns": "ledger",
    "UnreachableError": "errors",
    "UnseenRequestError": "errors",
    "UntrustedError": "errors",
    "WrongAddressError": "errors",
    "calibrate": "api.calibrate",
    "check": "api.check",
    "connect": "client.connect",
    "connect_async": "client.connect",
    "show": "notebook.live_display",
    "twin": "api.twin",
    "unknowns": "api.unknowns",
}

__all__ = [
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


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Give IPython the magics ``%%sandbox`` and ``%sandbox``: ``%load_ext doublecheck``."""
    from doublecheck import magics

    magics.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics away again and stop the double that they started."""
    from doublecheck import magics

    magics.unload(shell)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'doublecheck' has no attribute {name!r}")
    from agentdouble.imports import import_now

    module = f"doublecheck.{home}"
    import_now(module)
    return getattr(sys.modules[module], name)


def __dir__() -> list[str]:
    return list(__all__)
