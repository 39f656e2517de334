"""The backend of an MCP service, from the fields of a request (U-MCP-SERVICE-WIRE)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from agentdouble import ledger
from agentdouble.control_plane import backend_auth, mcp_commands, mcp_requests
from agentdouble.control_plane.action_errors import invalid, missing
from agentdouble.control_plane.backend_auth import Outbound
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.errors import NotBuiltError
from agentdouble.mcp_services import Backend, McpBackend, OpenApiBackend

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?")
_NOT_BUILT = {
    "CustomMcpConfiguration": "A server that the platform runs",  # without a RawConfig
    "EcsConfiguration": "A backend on machines of the cloud",
    "FunctionConfiguration": "A backend that is a function of the cloud",
    "VkeConfiguration": "A backend in a cluster of the cloud",
}


async def make(
    protocol: str,
    path: str,
    backend: mcp_requests.Backend | None,
    definition: mcp_requests.Protocol | None,
    authorizer: Outbound | None,
    sources: Sources,
) -> Backend:
    """Return the backend that the fields of CreateMCPService describe.

    A command may run in ``sources``.

    Raises ActionError, BackendError and DefinitionError.
    """
    ledger.choose("U-MCP-SERVICE-WIRE")
    kind = protocol.upper()
    package = _package(backend)
    if kind == "MCP" and package is not None:
        if backend_auth.headers(authorizer):
            raise invalid(
                backend_auth.NAME, "a command gets its credentials as env of its RawConfig"
            )
        return mcp_commands.make(package, mcp_commands.sources_of(sources))
    where = _where(backend, path)
    if kind == "MCP":
        if where is None:
            raise missing("BackendConfiguration.CustomConfiguration.Domain")
        return McpBackend(where, backend_auth.headers(authorizer))
    if kind != "HTTP":
        raise invalid("ProtocolType", f"{protocol[:100]!r} is none of MCP, HTTP")
    api = definition.HttpApiConfiguration if definition else None
    if api is None or api.Configuration is None:
        raise missing("ProtocolConfiguration.HttpApiConfiguration.Configuration")
    text, auth = api.Configuration, backend_auth.authentication(authorizer)
    base_url = where.rstrip("/") if where else None
    return await OpenApiBackend.vetted(text, base_url=base_url, auth=auth)


def _package(given: mcp_requests.Backend | None) -> mcp_requests.Package | None:
    """Return the package of a backend that this machine can run as a command, or None."""
    custom = given.CustomMcpConfiguration if given else None
    package = custom.PublicPackage if custom else None
    return package if package and package.RawConfig else None


def _where(given: mcp_requests.Backend | None, path: str) -> str | None:
    """Return the URL of a backend, or None if the request has no backend."""
    if not path.startswith("/"):
        raise invalid("Path", f"{path[:100]!r} does not begin with '/'")
    for name, what in _NOT_BUILT.items():
        if getattr(given, name, None) is not None:
            raise NotBuiltError(f"{what} (BackendConfiguration.{name})")
    custom = given.CustomConfiguration if given else None
    if custom is None:
        return None
    field = "BackendConfiguration.CustomConfiguration"
    if not custom.Domain:
        raise missing(f"{field}.Domain")
    if not _HOST.fullmatch(custom.Domain):
        raise invalid(f"{field}.Domain", f"{custom.Domain[:100]!r} is no name of a host")
    scheme = (custom.ProtocolType or ("https" if custom.Port == 443 else "http")).lower()
    if scheme not in ("http", "https"):
        raise invalid(f"{field}.ProtocolType", f"{scheme[:100]!r} is none of http, https")
    host = f"[{custom.Domain.strip('[]')}]" if ":" in custom.Domain else custom.Domain
    port = "" if custom.Port is None else f":{custom.Port}"
    return f"{scheme}://{host}{port}{path}"


def custom_configuration(url: str) -> tuple[Mapping[str, Any], str]:
    """Return the BackendConfiguration and the Path of a backend with this URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    custom = {"Domain": parts.hostname or "", "Port": port, "ProtocolType": parts.scheme}
    query = f"?{parts.query}" if parts.query else ""
    return {"CustomConfiguration": custom}, (parts.path or "/") + query
