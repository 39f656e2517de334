"""MCP services: an address and keys in front of any backend (sections 1, 2.5 and 4.3)."""

from agentdouble.mcp_services.backends import Backend, McpBackend, OpenApiBackend, ServerBackend
from agentdouble.mcp_services.commands import CommandBackend
from agentdouble.mcp_services.services import Key, McpServices, Service, Services, access_record

__all__ = [
    "Backend",
    "CommandBackend",
    "Key",
    "McpBackend",
    "McpServices",
    "OpenApiBackend",
    "ServerBackend",
    "Service",
    "Services",
    "access_record",
]
