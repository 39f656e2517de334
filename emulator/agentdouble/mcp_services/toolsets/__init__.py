"""Toolsets: several MCP services as one endpoint, each tool under a name of its own.

What stands here imports nothing heavy; ``server`` and what it imports need the MCP SDK, and are
imported when the first request comes.
"""

from agentdouble.mcp_services.toolsets.handle import McpToolsets
from agentdouble.mcp_services.toolsets.toolset import EXPOSES, Exposes, Toolset
from agentdouble.mcp_services.toolsets.toolsets import Toolsets

__all__ = ["EXPOSES", "Exposes", "McpToolsets", "Toolset", "Toolsets"]
