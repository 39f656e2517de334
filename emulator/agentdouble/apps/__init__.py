"""The decorator contract (section 4.6): the applications that authors write."""

from agentdouble.apps.a2a import A2AApp, agent_card
from agentdouble.apps.mcp import MCPApp
from agentdouble.apps.simple import SimpleApp

__all__ = ["A2AApp", "MCPApp", "SimpleApp", "agent_card"]
