"""Hosting of MCP servers: one as an ASGI application, or many behind exact paths and keys."""

from agentdouble.mcp_hosting.endpoint import (
    BODY_LIMIT,
    INTERNAL_ERROR,
    OPERATIONS,
    Endpoint,
    failure,
    is_mcp,
    render_refusal,
)
from agentdouble.mcp_hosting.host import PREFIX, Host, Hosted

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
