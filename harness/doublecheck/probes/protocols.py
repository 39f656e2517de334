"""Probes of MCP and A2A: keys, arguments, versions, notifications."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import Probing, json_of, unlike

_CARD = "/.well-known/agent-card.json"


@probe("U-A2A-TASK", "a2a")
def task(at: Probing) -> str:
    """Read the versions in the card."""
    card = json_of(at.ask("GET", _CARD).text)
    versions = [one.get("protocolVersion", "") for one in card.get("supportedInterfaces", ())]
    if any(version.startswith("1.") for version in versions):
        return "both"
    if str(card.get("protocolVersion", "")).startswith("0.3"):
        return "0.3"
    raise unlike("the card names the versions", [*versions, card.get("protocolVersion")])


@probe("U-WEBHOOKS", "a2a")
def webhooks(at: Probing) -> str:
    """Look whether the card promises push notifications."""
    capabilities = json_of(at.ask("GET", _CARD).text).get("capabilities") or {}
    return "a2a-push" if capabilities.get("pushNotifications") else "none"


@probe("U-MCP-ARGUMENTS", "mcp", reference=True)
def arguments(at: Probing) -> str:
    """Call a tool with an argument that it has no parameter for."""
    with at.platform.mcp() as mcp:
        if not any(tool.name == "add" for tool in mcp.tools()):
            raise NotSettledError("the MCP server is not the reference application's")
        return "refused" if mcp.call("add", a=1, b=2, c=3).is_error else "ignored"


@probe("U-MCP-UNAUTHORIZED", "control_plane", "mcp", writes=True)
def unauthorized(at: Probing) -> str:
    """Call a service without its key."""
    url = _url(_service(at))
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    status = at.ask("POST", url, ping, surface="services").status_code
    if status not in (401, 403):
        raise unlike("the answer is", f"HTTP {status}")
    return str(status)


def _service(at: Probing) -> dict[str, Any]:
    """Create a service for the platform's own MCP server; it is deleted at the end."""
    backend = urlsplit(at.platform.target.mcp)
    port = backend.port or (443 if backend.scheme == "https" else 80)
    where = {"Domain": backend.hostname, "Port": port, "ProtocolType": backend.scheme}
    made = at.act(
        "CreateMCPService",
        Name=f"dc-{at.token[:12]}",
        Path="/mcp",
        ProtocolType="MCP",
        BackendType="Custom",
        BackendConfiguration={"CustomConfiguration": where},
    ).ok()["MCPServiceId"]
    at.finally_(lambda: at.act("DeleteMCPService", MCPServiceId=made))
    found: dict[str, Any] = at.act("GetMCPService", MCPServiceId=made).ok()["MCPService"]
    return found


def _url(shown: dict[str, Any]) -> str:
    """Return the path of a service at the platform."""
    path: str = shown["Path"]
    return path
