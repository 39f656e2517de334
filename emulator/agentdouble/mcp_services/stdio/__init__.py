"""MCP services in front of a command that speaks MCP over its standard input and output."""

from agentdouble.mcp_services.stdio.hosted import StdioHosted
from agentdouble.mcp_services.stdio.programs import LONGEST_LINE, Program, Programs, Started

__all__ = ["LONGEST_LINE", "Program", "Programs", "Started", "StdioHosted"]
