"""doublecheck: the harness that puts a platform, or its double, through the same checks.

The public names are imported when they are first used, so that a test run which loads the
pytest plugin pays nothing for the rest.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from doublecheck.a2a import A2aClient, AsyncA2aClient
    from doublecheck.asking.calibrating import calibrate
    from doublecheck.asking.checks import check
    from doublecheck.asking.questions import unknowns
    from doublecheck.asking.twins import twin
    from doublecheck.async_platform import AsyncPlatform
    from doublecheck.browser import AsyncBrowser, Browser
    from doublecheck.calibration.findings import Finding, Findings
    from doublecheck.comparing.differences import Difference
    from doublecheck.comparing.references import References
    from doublecheck.connecting import connect, connect_async
    from doublecheck.contracts.clauses import Clause
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
    from doublecheck.exchanges import Exchange
    from doublecheck.fixtures import PlatformConfig
    from doublecheck.following import show
    from doublecheck.ledger import Unknown, Unknowns
    from doublecheck.live import Completion, LiveOutput
    from doublecheck.mcp import AsyncMcpClient, McpClient
    from doublecheck.platform import Platform
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
    from doublecheck.runs import Check
    from doublecheck.secret import Secret
    from doublecheck.series import AgentEvents, AgentSessions, Journal, McpTools, Sessions
    from doublecheck.target import Credentials, Target
    from doublecheck.twinning.comparison import Comparison

_HOMES = {
    "A2aAnswer": "results",
    "A2aClient": "a2a",
    "AgentEvent": "results",
    "AgentEvents": "series",
    "AgentSession": "results",
    "AgentSessions": "series",
    "AnswerError": "errors",
    "ArgumentError": "errors",
    "ArmedFault": "results",
    "AsyncA2aClient": "a2a",
    "AsyncBrowser": "browser",
    "AsyncMcpClient": "mcp",
    "AsyncPlatform": "async_platform",
    "BashResult": "results",
    "Browser": "browser",
    "BrowserInfo": "results",
    "CalibrationError": "errors",
    "Check": "runs",
    "ChecksCrashedError": "errors",
    "Clause": "contracts.clauses",
    "ClauseError": "errors",
    "ClosedError": "errors",
    "CodeError": "results",
    "CodeResult": "results",
    "Comparison": "twinning.comparison",
    "Completion": "live",
    "ConfigurationError": "errors",
    "Credentials": "target",
    "CredentialsMissingError": "errors",
    "CredentialsRefusedError": "errors",
    "Difference": "comparing.differences",
    "DoubleCheckError": "errors",
    "EmulatorCommandError": "errors",
    "Exchange": "exchanges",
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
    "McpClient": "mcp",
    "McpResult": "results",
    "McpTool": "results",
    "McpTools": "series",
    "MissingExtraError": "errors",
    "NoAnswerError": "errors",
    "NotADoubleError": "errors",
    "NotCheckedError": "errors",
    "Output": "results",
    "Platform": "platform",
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
    "Target": "target",
    "TargetError": "errors",
    "UnexpectedHostError": "errors",
    "Unknown": "ledger",
    "Unknowns": "ledger",
    "UnreachableError": "errors",
    "UnseenRequestError": "errors",
    "UntrustedError": "errors",
    "WrongAddressError": "errors",
    "calibrate": "asking.calibrating",
    "check": "asking.checks",
    "connect": "connecting",
    "connect_async": "connecting",
    "show": "following",
    "twin": "asking.twins",
    "unknowns": "asking.questions",
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
