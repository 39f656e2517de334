"""An MCP application, and an A2A application with a custom card."""

from __future__ import annotations

import os

from agentdouble import A2AApp, MCPApp

mcp = MCPApp("adding")
a2a = A2AApp("echoing", runner="echo")


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def process() -> int:
    """Return the process that answers."""
    return os.getpid()
