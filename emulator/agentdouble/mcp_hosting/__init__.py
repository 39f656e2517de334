"""Hosting of MCP servers: one as an ASGI application, or many behind exact paths and keys."""

from agentdouble.mcp_hosting.endpoint import BODY_LIMIT, Endpoint
from agentdouble.mcp_hosting.host import PREFIX, Host, Hosted
from agentdouble.mcp_hosting.refusals import (
    INTERNAL_ERROR,
    OPERATIONS,
    failure,
    is_mcp,
    render_refusal,
)

__all__ = [
    "BODY_LIMIT",
    "INTERNAL_ERROR",
    "OPERATIONS",
    "PREFIX",
    "Endpoint",
    "Host",
    "Hosted",
    "failure",
    "is_mcp",
    "render_refusal",
]
