"""MCP applications: functions and agents as tools, resources and prompts of an MCP server."""

from agentdouble.apps.mcp.app import PATH, MCPApp

__all__ = ["PATH", "MCPApp"]
