"""HTTP APIs as MCP tools: Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1 definitions (SVC-02).

``load(source)`` reads a definition, and ``server(definition)`` makes a low-level MCP server whose
tools call the API. It imports the MCP SDK.
"""

from __future__ import annotations

from agentdouble.mcp_services.backend_credentials import ApiKey, Auth, Basic, Bearer
from agentdouble.mcp_services.openapi.definition import (
    ApiDefinition,
    DefinedOperation,
    address_of,
)
from agentdouble.mcp_services.openapi.loading import load, load_text
from agentdouble.mcp_services.openapi.security import missing_credentials
from agentdouble.mcp_services.openapi.serving import server

__all__ = [
    "ApiDefinition",
    "ApiKey",
    "Auth",
    "Basic",
    "Bearer",
    "DefinedOperation",
    "address_of",
    "load",
    "load_text",
    "missing_credentials",
    "server",
]
