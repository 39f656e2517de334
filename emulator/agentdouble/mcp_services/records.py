"""The access record of section 2.5: what a client pastes into its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Protocol

from agentdouble.errors import ServiceKeyError
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services.service import Key

_CODE = (
    "margin:0;padding:0;background:none;color:inherit;font-size:.9em;line-height:1.45;"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"
)


class Keyed(Protocol):
    """A service or a toolset."""

    @property
    def name(self) -> str: ...

    @property
    def keys(self) -> Sequence[Key]: ...


class AccessRecord(dict[str, Any]):
    """A dict as any other, which shows ``***`` in the place of its key.

    So are those in it. ``json.dumps`` writes it as it is, with the key.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: _kept(value) for name, value in fields.items()})

    def __repr__(self) -> str:
        return f"<access record {json.dumps(_hidden(self), default=repr)}, json.dumps() of it has the key>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        told = escape(json.dumps(_hidden(self), indent=2, default=repr))
        return (
            f'<pre style="{_CODE}">{told}</pre>'
            f'<div style="opacity:.7"><code style="{_CODE}">json.dumps()</code>'
            " of it has the key</div>"
        )


def access_record(service: Keyed, gateway_url: str) -> AccessRecord:
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
    return AccessRecord({"mcpServers": {service.name: server}})


def _kept(value: Any) -> Any:
    return AccessRecord(value) if isinstance(value, dict) else value


def _hidden(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields whose keys are not shown."""
    return {name: _shown(name, value) for name, value in fields.items()}


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _hidden(value)
    return "Bearer ***" if name == "Authorization" else value
