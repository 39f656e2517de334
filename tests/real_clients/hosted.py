"""Applications for the double and for its runtimes."""

from __future__ import annotations

import os

from agentdouble import A2AApp, MCPApp, agent_card

OWN = f"http://127.0.0.1:{os.environ.get('PORT', '8000')}"  # a runtime's own port

agent = A2AApp("agent", runner="echo", card=agent_card("agent", OWN))
tools = MCPApp("tools")


@tools.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tools.tool
def fail() -> None:
    """Raise an exception."""
    raise ValueError("not today")
