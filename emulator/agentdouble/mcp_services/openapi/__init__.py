"""HTTP APIs as MCP tools: Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1 definitions (SVC-02).

``load(source)`` reads a definition, ``server(definition)`` makes a low-level MCP server of it,
whose tools call the API. What is heavy is imported by the first call of either.
"""

from __future__ import annotations

from agentdouble.mcp_services.openapi.authentication import ApiKey, Auth, Basic, Bearer
from agentdouble.mcp_services.openapi.definition import Definition, Operation
from agentdouble.mcp_services.openapi.loading import load
from agentdouble.mcp_services.openapi.serving import server

__all__ = ["ApiKey", "Auth", "Basic", "Bearer", "Definition", "Operation", "load", "server"]
