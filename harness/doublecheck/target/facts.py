"""The facts of a target: the addresses of a platform, its credentials and its properties.

Each fact is declared in one row, which defines

- the option of ``doublecheck run`` and, with ``--platform-`` before it, of pytest: ``help``;
- the key of TOML files: ``key``;
- the environment variable: ``variable``;
- the argument of ``connect()``: ``argument``, which ``connect`` also names in its signature;
- the field of ``Target`` of the same name.

A secret is not an option, because other users of a machine could read it, and it is not in a file,
because files are committed and shared: in a file, its key names the variable with the secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

# The names of types and variables are literals here: every run of pytest imports this module, and
# the modules that define them (config_files, agentdouble.environment) take 70 ms to import.
Type = Literal[
    "address",
    "command",
    "count",
    "file",
    "flag",
    "kind",
    "level",
    "number",
    "secret",
    "secret_by_surface",
    "surfaces",
    "text",
]


@dataclass(frozen=True)
class Fact:
    """One fact: its name, the type of its value, and where it can be set."""

    name: str
    type: Type
    variable: str | None = None
    metavar: str | None = None
    help: str | None = None
    argument: bool = False

    @property
    def secret(self) -> bool:
        """Whether its value must not be shown or written to a file."""
        return self.type in ("secret", "secret_by_surface")

    @property
    def key(self) -> str:
        """The key in a file; for a secret, the key that names its environment variable."""
        return f"{self.name}_env" if self.secret else self.name

    @property
    def option(self) -> str:
        """The name of the option, without the dashes in front."""
        return self.name.replace("_", "-")


TARGET = Fact(
    "target",
    "text",
    "DOUBLECHECK_TARGET",
    "TARGET",
    "double, live, or a target of the configuration.",
    argument=True,
)
CONFIG = Fact("config", "text", "DOUBLECHECK_CONFIG", "FILE", "A TOML file with targets.")

FACTS = (
    Fact("kind", "kind"),
    Fact(
        "url",
        "address",
        "DOUBLECHECK_URL",
        "URL",
        "Where the platform runs (default: a double is started).",
        argument=True,
    ),
    Fact(
        "api_server",
        "address",
        "DOUBLECHECK_API_SERVER",
        "URL",
        "Where its API server is (default: at --url).",
    ),
    Fact(
        "control_plane",
        "address",
        "DOUBLECHECK_CONTROL_PLANE",
        "URL",
        "Where its control plane is (default: at --url).",
        argument=True,
    ),
    Fact(
        "mcp",
        "address",
        "DOUBLECHECK_MCP",
        "URL",
        "Where its MCP application and services are, without /mcp.",
    ),
    Fact(
        "a2a",
        "address",
        "DOUBLECHECK_A2A",
        "URL",
        "Where its A2A application is (default: at --url).",
    ),
    Fact(
        "offers",
        "surfaces",
        "DOUBLECHECK_OFFERS",
        "SURFACES",
        "What it has, with commas between: application,api_server.",
    ),
    Fact(
        "tool_id",
        "text",
        "PLATFORM_TOOL_ID",
        "ID",
        "The sandbox tool that code runs in.",
        argument=True,
    ),
    Fact(
        "region",
        "text",
        "PLATFORM_TOOL_REGION",
        "REGION",
        "The region that its control plane is asked for.",
        argument=True,
    ),
    Fact("ca_file", "file", "SSL_CERT_FILE", "FILE", "The certificates to trust."),
    Fact(
        "emulator_command",
        "command",
        "DOUBLECHECK_EMULATOR_COMMAND",
        "COMMAND",
        "Start the double with this command instead.",
    ),
    Fact(
        "reference_app",
        "flag",
        "DOUBLECHECK_REFERENCE_APP",
        help="It runs the checks' reference application.",
    ),
    Fact(
        "allow_writes",
        "flag",
        "DOUBLECHECK_ALLOW_WRITES",
        help="Make and delete on it, though it is live.",
    ),
    Fact(
        "examples",
        "count",
        "DOUBLECHECK_EXAMPLES",
        "N",
        "How many inputs each check tries (default: 6, on a live platform 2).",
    ),
    Fact(
        "seed",
        "number",
        "DOUBLECHECK_SEED",
        "N",
        "Where the generated inputs begin; the same ones for the same number (default: 0).",
    ),
    Fact(
        "level",
        "level",
        "DOUBLECHECK_LEVEL",
        "LEVEL",
        "full (default), or smoke: a few requests to each surface, and nothing to deploy for them.",
    ),
    Fact("access_key", "secret", "PLATFORM_ACCESS_KEY", argument=True),
    Fact("secret_key", "secret", "PLATFORM_SECRET_KEY", argument=True),
    Fact("api_key", "secret_by_surface", "DOUBLECHECK_API_KEY", argument=True),
    Fact("other_api_key", "secret", "DOUBLECHECK_OTHER_API_KEY"),
    Fact("restricted_access_key", "secret", "DOUBLECHECK_RESTRICTED_ACCESS_KEY"),
    Fact("restricted_secret_key", "secret", "DOUBLECHECK_RESTRICTED_SECRET_KEY"),
)

BY_NAME = {fact.name: fact for fact in (TARGET, CONFIG, *FACTS)}
BY_KEY = {fact.key: fact for fact in FACTS}
OPTIONS = tuple(fact for fact in (TARGET, *FACTS, CONFIG) if fact.help)


def variable(name: str) -> str:
    """Return the environment variable of a fact."""
    found = BY_NAME[name].variable
    assert found is not None, name
    return found


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
