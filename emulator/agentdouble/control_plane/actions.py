"""The actions of every surface; imported when the first one is called."""

from agentdouble.control_plane.async_command_actions import AsyncCommandActions
from agentdouble.control_plane.invoke_tool_action import InvokeTool
from agentdouble.control_plane.mcp_service_actions import MCPServiceActions
from agentdouble.control_plane.runtime_actions import RuntimeActions
from agentdouble.control_plane.session_actions import SessionActions
from agentdouble.control_plane.snapshot_actions import SnapshotActions
from agentdouble.control_plane.tool_actions import ToolActions

__all__ = [
    "AsyncCommandActions",
    "InvokeTool",
    "MCPServiceActions",
    "RuntimeActions",
    "SessionActions",
    "SnapshotActions",
    "ToolActions",
]
