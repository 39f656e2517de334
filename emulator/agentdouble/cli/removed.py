"""Commands that earlier versions had, and what to use instead."""

from __future__ import annotations

from collections.abc import Sequence

REMOVED = {
    "tool create": "agentdouble call CreateTool Name=NAME ToolType=CodeEnv",
    "tool list": "agentdouble call ListTools",
    "tool delete": "agentdouble call DeleteTool ToolId=ID",
    "session show": "agentdouble call GetSession ToolId=ID SessionId=ID, or GetSessionLogs",
    "session destroy": "agentdouble session delete SESSION",
    "session snapshot": "agentdouble call CreateSessionSnapshot ToolId=ID SessionId=ID",
    "session snapshots": "agentdouble call ListSessionSnapshots ToolId=ID",
    "session resume": "agentdouble call ResumeSessionFromSnapshot ToolId=ID SnapshotId=ID",
    "attach": "agentdouble session attach SESSION",
    "what-if": "the console, or POST /_emulator/what-if",
    "mcp show": "agentdouble call GetMCPService MCPServiceId=ID",
    "mcp logs": "GET /_emulator/mcp-services/NAME/logs",
    "runtime create": "agentdouble call CreateRuntime Name=NAME ... (call --help has an example)",
    "runtime list": "agentdouble call ListRuntimes",
    "runtime show": "agentdouble call GetRuntime RuntimeId=ID",
    "runtime update": "agentdouble call UpdateRuntime RuntimeId=ID NAME=VALUE",
    "runtime release": "agentdouble call ReleaseRuntime RuntimeId=ID VersionNumber=NUMBER",
    "runtime delete": "agentdouble call DeleteRuntime RuntimeId=ID",
    "runtime logs": "GET /_emulator/runtimes/NAME/logs",
}


def refusal(words: Sequence[str]) -> str | None:
    """Return the refusal of a command line that begins with a removed command, or None."""
    for name, instead in REMOVED.items():
        if [*words[: len(name.split())]] == name.split():
            return f"There is no command {name!r} any more. Use: {instead}"
    return None
