"""Hosting of MCP servers: one as an ASGI application, or many behind exact paths and keys.

An ``McpEndpoint`` serves one server of the MCP SDK over streamable HTTP, and imports the SDK at its
first request. A ``Host`` holds many endpoints, each with its own keys, and adds and removes them at
run time. ``refusals`` are errors in the form of MCP.

MCP services and MCPApps use both. This package may import ``journal``, ``server`` and ``core``.
"""

from agentdouble.mcp_hosting.endpoint import BODY_LIMIT, OPERATIONS, McpEndpoint
from agentdouble.mcp_hosting.host import PREFIX, Host, HostedServer
from agentdouble.mcp_hosting.refusals import INTERNAL_ERROR, failure, is_mcp, render_refusal

__all__ = [
    "BODY_LIMIT",
    "INTERNAL_ERROR",
    "OPERATIONS",
    "PREFIX",
    "Host",
    "HostedServer",
    "McpEndpoint",
    "failure",
    "is_mcp",
    "render_refusal",
]
