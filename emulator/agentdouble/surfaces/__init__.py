"""The surfaces of a double: each module here connects one package of agentdouble to it.

A ``Surface`` has the package's routes, its part of ``/_emulator``, its actions of the control plane
and its part of a reset, and it starts and stops the package's work. ``Context`` has what all
surfaces use. A package that is slow to import is imported when its surface is first asked
(``LateApp``).

This package may import every package that it connects; only ``platform`` and ``routing`` import it.
"""

from __future__ import annotations

from agentdouble.surfaces.admin import Admin
from agentdouble.surfaces.api_server import ApiServerMode
from agentdouble.surfaces.applications import HostedA2A, HostedApplications
from agentdouble.surfaces.control_plane import ControlPlaneActions
from agentdouble.surfaces.descriptions import LandingPage, OpenApiDocument
from agentdouble.surfaces.mcp_services import MCPServices
from agentdouble.surfaces.model_endpoint import ModelEndpoint
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.sandbox import JupyterServer, Sandbox
from agentdouble.surfaces.surface import Surface

# In the order of paths: the first surface with a path answers, so A2A's /v1/tasks comes before
# the sandbox's /v1. They start in reverse order and stop in this order, callers first.
SURFACES: tuple[type[Surface], ...] = (
    ControlPlaneActions,  # the busiest
    HostedApplications,
    ApiServerMode,
    HostedA2A,
    OpenApiDocument,
    Admin,
    MCPServices,
    Runtimes,
    Sandbox,
    JupyterServer,
    ModelEndpoint,
    LandingPage,
)
