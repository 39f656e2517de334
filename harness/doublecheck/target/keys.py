"""The keys that say where a target is and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble import environment
from doublecheck.target import config_values as values
from doublecheck.target.config_values import Value

CONFIG = "DOUBLECHECK_CONFIG"
TARGET = "DOUBLECHECK_TARGET"


@dataclass(frozen=True)
class Key:
    """One key: how its value is read, and the environment variable that sets it."""

    read: Callable[[Any], Value]
    variable: str | None = None

    @property
    def secret(self) -> bool:
        """Whether a wrong value may be a secret, and is not to be shown."""
        return self.read in (values.variable, values.variables)


KEYS: Mapping[str, Key] = {
    "kind": Key(values.kind),
    "url": Key(values.address, "DOUBLECHECK_URL"),
    "api_server": Key(values.address, "DOUBLECHECK_API_SERVER"),
    "control_plane": Key(values.address, "DOUBLECHECK_CONTROL_PLANE"),
    "mcp": Key(values.address, "DOUBLECHECK_MCP"),
    "a2a": Key(values.address, "DOUBLECHECK_A2A"),
    "offers": Key(values.surfaces, "DOUBLECHECK_OFFERS"),
    "reference_app": Key(values.flag, "DOUBLECHECK_REFERENCE_APP"),
    "allow_writes": Key(values.flag, "DOUBLECHECK_ALLOW_WRITES"),
    "tool_id": Key(values.text, environment.TOOL_ID),
    "region": Key(values.text, environment.TOOL_REGION),
    "ca_file": Key(values.text, environment.CA_FILE),
    "emulator_command": Key(values.command, "DOUBLECHECK_EMULATOR_COMMAND"),
    "api_key_env": Key(values.variables),
    "access_key_env": Key(values.variable),
    "secret_key_env": Key(values.variable),
    "other_api_key_env": Key(values.variable),
    "restricted_access_key_env": Key(values.variable),
    "restricted_secret_key_env": Key(values.variable),
}
SECRETS = frozenset(key.removesuffix("_env") for key in KEYS if key.endswith("_env"))
"""What a file never holds itself; it names the variable that does."""

LOCATING = frozenset({"url", "api_server", "control_plane", "mcp", "a2a", "emulator_command"})
"""What says that a platform runs already, or how one is started."""
