"""The access record of section 2.5: what a client pastes into its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agentdouble.errors import ServiceKeyError
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services.service import Key


class Keyed(Protocol):
    """A service or a toolset."""

    @property
    def name(self) -> str: ...

    @property
    def keys(self) -> Sequence[Key]: ...


def access_record(service: Keyed, gateway_url: str) -> dict[str, Any]:
    """Return ``{"mcpServers": {name: {"httpUrl": ..., "headers": ...}}}`` with the first key.

    Raises ServiceKeyError where every key has been revoked (SVC-03).
    """
    if not service.keys:
        raise ServiceKeyError(
            f"The MCP service {service.name!r} has no key left. Make a new one first.",
            service=service.name,
        )
    server = {
        "httpUrl": gateway_url.rstrip("/") + PREFIX + service.name,
        "headers": {"Authorization": f"Bearer {service.keys[0].value}"},
    }
    return {"mcpServers": {service.name: server}}
