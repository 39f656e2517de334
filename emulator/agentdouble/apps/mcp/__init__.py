"""MCP applications: functions and agents as tools, resources and prompts of an MCP server.

``app`` is the MCPApp, which collects decorated functions and imports no SDK. ``sdk_server`` makes
the SDK's MCPServer of them at the first request, ``hosting`` runs them, and ``context`` is what a
function gets of its request. ``subscriptions`` notifies connections of changed resources.
"""

from agentdouble.apps.mcp.app import PATH, MCPApp

__all__ = ["PATH", "MCPApp"]
