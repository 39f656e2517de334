"""The applications that the benchmark of a long life serves."""

from __future__ import annotations

from agentdouble import A2AApp, MCPApp

tools = MCPApp("tools")
tasks = A2AApp("tasks", runner="echo")


@tools.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
