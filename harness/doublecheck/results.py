"""The classes of what platforms, fixtures, checks and twins return, for annotations.

Each class is imported from its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.core.lazy_names import LazyNames

if TYPE_CHECKING:
    from doublecheck.calibration.finding import Finding as Finding
    from doublecheck.calibration.findings import Findings as Findings
    from doublecheck.client._async.a2a import AsyncA2aClient as AsyncA2aClient
    from doublecheck.client._async.agents import AsyncAgents as AsyncAgents
    from doublecheck.client._async.browser import AsyncBrowser as AsyncBrowser
    from doublecheck.client._async.clock import AsyncPlatformClock as AsyncPlatformClock
    from doublecheck.client._async.faults import AsyncPlatformFaults as AsyncPlatformFaults
    from doublecheck.client._async.mcp import AsyncMcpClient as AsyncMcpClient
    from doublecheck.client._async.model import AsyncModelScript as AsyncModelScript
    from doublecheck.client._async.model import AsyncPlatformModel as AsyncPlatformModel
    from doublecheck.client._async.sandbox import AsyncSandbox as AsyncSandbox
    from doublecheck.client._sync.a2a import A2aClient as A2aClient
    from doublecheck.client._sync.agents import Agents as Agents
    from doublecheck.client._sync.browser import Browser as Browser
    from doublecheck.client._sync.clock import PlatformClock as PlatformClock
    from doublecheck.client._sync.faults import PlatformFaults as PlatformFaults
    from doublecheck.client._sync.mcp import McpClient as McpClient
    from doublecheck.client._sync.model import ModelScript as ModelScript
    from doublecheck.client._sync.model import PlatformModel as PlatformModel
    from doublecheck.client._sync.sandbox import Sandbox as Sandbox
    from doublecheck.compare.differences import Comparison as Comparison
    from doublecheck.compare.differences import Difference as Difference
    from doublecheck.contracts.clauses import Clause as Clause
    from doublecheck.contracts.run_result import Check as Check
    from doublecheck.core.exit_codes import ExitCode as ExitCode
    from doublecheck.reports.report import Report as Report
    from doublecheck.reports.report import Reports as Reports
    from doublecheck.values.agents import A2aAnswer as A2aAnswer
    from doublecheck.values.agents import AgentEvent as AgentEvent
    from doublecheck.values.agents import AgentEvents as AgentEvents
    from doublecheck.values.agents import AgentSession as AgentSession
    from doublecheck.values.agents import AgentSessions as AgentSessions
    from doublecheck.values.agents import McpResult as McpResult
    from doublecheck.values.agents import McpTool as McpTool
    from doublecheck.values.agents import McpTools as McpTools
    from doublecheck.values.agents import StreamEvent as StreamEvent
    from doublecheck.values.double import ArmedFault as ArmedFault
    from doublecheck.values.double import Journal as Journal
    from doublecheck.values.double import JournalEntry as JournalEntry
    from doublecheck.values.double import SandboxInfo as SandboxInfo
    from doublecheck.values.double import SandboxInfos as SandboxInfos
    from doublecheck.values.double import Unknown as Unknown
    from doublecheck.values.double import Unknowns as Unknowns
    from doublecheck.values.executions import BashResult as BashResult
    from doublecheck.values.executions import BrowserInfo as BrowserInfo
    from doublecheck.values.executions import CodeError as CodeError
    from doublecheck.values.executions import CodeResult as CodeResult
    from doublecheck.values.executions import Completion as Completion
    from doublecheck.values.executions import LiveOutput as LiveOutput
    from doublecheck.values.executions import Output as Output
    from doublecheck.values.executions import SessionSnapshot as SessionSnapshot
    from doublecheck.wire.exchanges import Exchange as Exchange

_NAMES = LazyNames(__file__)

__all__ = [
    "A2aAnswer",
    "A2aClient",
    "AgentEvent",
    "AgentEvents",
    "AgentSession",
    "AgentSessions",
    "Agents",
    "ArmedFault",
    "AsyncA2aClient",
    "AsyncAgents",
    "AsyncBrowser",
    "AsyncMcpClient",
    "AsyncModelScript",
    "AsyncPlatformClock",
    "AsyncPlatformFaults",
    "AsyncPlatformModel",
    "AsyncSandbox",
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
    "ModelScript",
    "Output",
    "PlatformClock",
    "PlatformFaults",
    "PlatformModel",
    "Report",
    "Reports",
    "Sandbox",
    "SandboxInfo",
    "SandboxInfos",
    "SessionSnapshot",
    "StreamEvent",
    "Unknown",
    "Unknowns",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return _NAMES.load(name)
    raise AttributeError(f"module 'doublecheck.results' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_NAMES)
