"""MCP services: an address and keys in front of any backend (sections 1, 2.5 and 4.3).

``services`` has the services of a double, with names, records in the store, and the ``keys`` of
their callers. ``backends`` has the kinds of backends as values: an MCP server to which
``passthrough`` passes everything on, an HTTP API with an OpenAPI definition (``openapi``), and a
command (``commands``); ``stdio`` has a session for each of the command's clients.
``backend_credentials`` are sent to backends.

The kinds import the MCP SDK when they are first used. This package may import ``mcp_hosting``,
``state``, ``journal`` and ``core``. It starts no process itself: whoever creates the services
passes something that does.
"""

from agentdouble.mcp_services.backend_credentials import ApiKey, Basic, Bearer
from agentdouble.mcp_services.backends import Backend, McpBackend, OpenApiBackend, ServerBackend
from agentdouble.mcp_services.commands import CommandBackend
from agentdouble.mcp_services.keys import Key
from agentdouble.mcp_services.services import McpServices, Service, Services, access_record

__all__ = [
    "ApiKey",
    "Backend",
    "Basic",
    "Bearer",
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
