"""The surfaces of a double, each a folder below and a file here that makes it one of them."""

from __future__ import annotations

from agentdouble.surfaces.a2a import HostedA2A
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.applications import HostedApplications
from agentdouble.surfaces.mcp_services import MCPServices
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.sandbox import Sandbox
from agentdouble.surfaces.surface import Context, Surface

__all__ = [
    "ApiServerMode",
    "Context",
    "HostedA2A",
    "HostedApplications",
    "MCPServices",
    "Runtimes",
    "Sandbox",
    "Surface",
]
