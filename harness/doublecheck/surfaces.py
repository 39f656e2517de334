"""The surfaces of a platform, of which a target declares those that it has."""

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
