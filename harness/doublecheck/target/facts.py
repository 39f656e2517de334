"""The facts of a target: the addresses of a platform, its credentials and its properties.

Each fact is declared in one row, which defines

- the option of ``doublecheck run`` and, with the prefix ``--platform-``, of pytest: ``help``;
- the key of TOML files: ``key``;
- the environment variable: ``variable``;
- the argument of ``connect()``: ``argument``, which ``connect`` also names in its signature;
- the field of ``Target`` with the same name.

A secret is not an option, because other users of a machine could read it, and it is not in a file,
because files are committed and shared: in a file, its key names the variable with the secret.
"""

from __future__ import annotations

from typing import Literal, get_args

from doublecheck.target.fact import Fact

TARGET = Fact("target", "text", "double, live, or a target of the configuration.", argument=True)

FACTS = (
    Fact("kind", "kind"),
    Fact("url", "address", "The platform's address (default: a double is started).", argument=True),
    Fact("api_server", "address", "Address of the API server (default: --url)."),
    Fact(
        "control_plane", "address", "Address of the control plane (default: --url).", argument=True
    ),
    Fact("mcp", "address", "Address of MCP application and services, without /mcp."),
    Fact("a2a", "address", "Address of the A2A application (default: --url)."),
    Fact("offers", "surfaces", "Surfaces of the platform, as application,api_server."),
    Fact("tool_id", "text", "The sandbox tool that code runs in.", "PLATFORM_TOOL_ID", True),
    Fact(
        "region", "text", "The region of the control plane.", "PLATFORM_TOOL_REGION", argument=True
    ),
    Fact("ca_file", "file", "The CA file to trust.", "SSL_CERT_FILE"),
    Fact("reference_app", "flag", "The platform runs the reference application."),
    Fact("allow_writes", "flag", "Also create and delete things on a live platform."),
    Fact("examples", "count", "Inputs that each check tries (default: 6, on a live platform 2)."),
    Fact("seed", "number", "The seed of the generated inputs (default: 0)."),
    Fact(
        "level",
        "level",
        "full (default), quick: 2 examples, nothing slow, or smoke: a few requests per surface.",
    ),
    Fact("access_key", "secret", variable="PLATFORM_ACCESS_KEY", argument=True),
    Fact("secret_key", "secret", variable="PLATFORM_SECRET_KEY", argument=True),
    Fact("api_key", "secret_by_surface", argument=True),
    Fact("other_api_key", "secret"),
    Fact("restricted_access_key", "secret"),
    Fact("restricted_secret_key", "secret"),
)

BY_NAME = {fact.name: fact for fact in (TARGET, *FACTS)}
BY_KEY = {fact.key: fact for fact in FACTS}
OPTIONS = tuple(fact for fact in (TARGET, *FACTS) if fact.help)

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


def variable(name: str) -> str:
    """Return the environment variable of a fact."""
    return BY_NAME[name].variable


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
