"""Toolsets: several MCP services as one endpoint, each tool under a unique name.

This package imports nothing heavy. ``server`` and its imports need the MCP SDK, and are imported
when the first request comes.
"""

from agentdouble.mcp_services.toolsets.toolsets import EXPOSES, Exposes, Toolset, Toolsets

__all__ = ["EXPOSES", "Exposes", "Toolset", "Toolsets"]
