"""The surfaces of a platform: the names that a target declares, and the surface of a path."""

from __future__ import annotations

from typing import Literal, get_args

Surface = Literal[
    "application",
    "api_server",
    "mcp",
    "a2a",
    "control_plane",
    "sandbox",
    "services",
    "runtimes",
    "library",
]

SURFACES: frozenset[Surface] = frozenset(get_args(Surface))

_HTTP: tuple[tuple[Surface, tuple[str, ...]], ...] = (
    ("api_server", ("/list-apps", "/apps", "/run", "/run_sse", "/version")),
    ("mcp", ("/mcp",)),
    ("a2a", ("/.well-known",)),
)


def surface_of(path: str) -> Surface:
    """Return the surface of a path in the specification.

    Probes belong to the application; for the API server's ``/health``, pass its surface.
    """
    route = path.partition("?")[0]
    if route == "/":
        return "a2a"
    for surface, prefixes in _HTTP:
        if any(route == prefix or route.startswith(f"{prefix}/") for prefix in prefixes):
            return surface
    return "application"
