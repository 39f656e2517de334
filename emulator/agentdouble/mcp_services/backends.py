"""The backends of MCP services, as values that can be stored and restored."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlsplit

import anyio

from agentdouble.core.imports import import_now
from agentdouble.core.threads import import_in_thread, run_in_thread
from agentdouble.errors import BackendError
from agentdouble.mcp_hosting import HostedServer, McpEndpoint
from agentdouble.mcp_services.backend_credentials import ApiKey, Auth, Basic, Bearer, is_header_name
from agentdouble.mcp_services.commands import CommandBackend, Programs
from agentdouble.mcp_services.passthrough import PassThrough
from agentdouble.state import Record

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.streamable_http import EventStore

    from agentdouble.mcp_services.openapi import ApiDefinition


_OPENAPI = "agentdouble.mcp_services.openapi"
_TRIED, _PATIENCE_S = 4, 3.0  # servers of an API, and the time for each

# if these do not fit the body, one request is read as two
_FRAMING = frozenset(("connection", "content-length", "host", "trailer", "transfer-encoding"))
_VISIBLE = re.compile(r"[!-~]+")
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]*")


@dataclass(frozen=True)
class OpenApiBackend:
    """An HTTP API that a Swagger 2.0, OpenAPI 3.0 or 3.1 definition describes (SVC-02).

    Create it with ``OpenApiBackend.load()``, which checks the definition. ``document`` is the
    definition as JSON. ``base_url``, ``auth`` and ``timeout_s`` are passed to ``openapi.server``.
    ``warnings`` say what of the definition could not be used, and which credentials it needs.
    ``servers`` are the addresses of the API, without their paths.
    """

    kind: ClassVar[str] = "openapi"

    document: str = field(repr=False)
    base_url: str | None = None
    auth: Auth | None = None
    timeout_s: float = 30.0
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)
    servers: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def load(
        cls, source: Mapping[str, Any] | str | Path | ApiDefinition, **options: Any
    ) -> OpenApiBackend:
        """Return the backend of a document or a file; raise DefinitionError.

        This takes some 5 ms per operation: on an event loop, use ``vetted``.
        """
        import_now(_OPENAPI)
        from agentdouble.mcp_services import openapi  # slow: the MCP SDK, 1 s

        read = source if isinstance(source, openapi.ApiDefinition) else openapi.load(source)
        backend = cls(json.dumps(read.document), **options)
        backend.make_server(read)  # so that errors are reported now
        addresses = {openapi.address_of(read, it, backend.base_url) for it in read.operations}
        servers = {urlsplit(address)._replace(path="").geturl() for address in addresses}
        return dataclasses.replace(
            backend,
            warnings=(*read.warnings, *openapi.missing_credentials(read, backend.auth)),
            servers=tuple(sorted(servers)),
        )

    @classmethod
    async def vetted(cls, text: str, **options: Any) -> OpenApiBackend:
        """Return the backend of a document of somebody else; raise DefinitionError."""
        await import_in_thread(_OPENAPI)
        from agentdouble.mcp_services import openapi  # slow: the MCP SDK, 1 s

        return await run_in_thread(lambda: cls.load(openapi.load_text(text), **options))

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return an endpoint whose tools call the API."""
        return McpEndpoint(self.make_server)

    def make_server(self, definition: ApiDefinition | None = None) -> Server[Any]:
        """Return a server of the tools; read the definition unless it is given."""
        import_now(_OPENAPI)
        from agentdouble.mcp_services import openapi  # slow: the MCP SDK, 1 s

        if definition is None:
            definition = openapi.load_text(self.document)
        return openapi.server(
            definition, base_url=self.base_url, auth=self.auth, timeout_s=self.timeout_s
        )

    async def unreachable(self) -> list[str]:
        """Return a sentence for each server of the API to which no connection can be made."""
        tried = self.servers[:_TRIED]
        connected = await asyncio.gather(*map(_connects, tried))
        return [
            f"The API at {server} cannot be reached now."
            for server, is_connected in zip(tried, connected, strict=True)
            if not is_connected
        ]

    def to_record(self) -> Record:
        """Return the backend as JSON-ready data."""
        auth = self.auth
        record = None if auth is None else {"type": type(auth).__name__, **dataclasses.asdict(auth)}
        return {
            "document": self.document,
            "base_url": self.base_url,
            "auth": record,
            "timeout_s": self.timeout_s,
            "warnings": list(self.warnings),
            "servers": list(self.servers),
        }

    @classmethod
    def of(cls, *, auth: Mapping[str, Any] | None, **fields: Any) -> OpenApiBackend:
        """Return the backend of a record."""
        for name in ("warnings", "servers"):
            fields[name] = tuple(fields.get(name, ()))
        if auth is None:
            return cls(auth=None, **fields)
        kinds: dict[str, type[Auth]] = {"ApiKey": ApiKey, "Basic": Basic, "Bearer": Bearer}
        arguments = {name: value for name, value in auth.items() if name != "type"}
        return cls(auth=kinds[auth["type"]](**arguments), **fields)


class Backend(Protocol):
    """The backend of a service; ``kind`` names its class in records."""

    kind: ClassVar[str]

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return the application that answers for the service with this name.

        ``programs`` starts processes.
        """

    def to_record(self) -> Record | None:
        """Return the backend as JSON-ready data, or None if it ends with the process."""


@dataclass(frozen=True)
class McpBackend:
    """A server that speaks MCP over streamable HTTP at ``url``.

    ``headers`` are sent to it with every request: its own credentials, for example. Clients of
    the service see neither. Raises BackendError for an address or header that cannot be used.
    """

    kind: ClassVar[str] = "mcp"

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url)
        for name, value in self.headers.items():
            is_valid = is_header_name(name) and _HEADER_VALUE.fullmatch(value)
            if not is_valid or name.lower() in _FRAMING:
                raise BackendError(f"The header {name!r} for a backend cannot be sent.", service="")

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return an application that passes requests on to the server."""
        return PassThrough(name, self.url, self.headers)

    def to_record(self) -> Record:
        """Return the backend as JSON-ready data."""
        return {"url": self.url, "headers": dict(self.headers)}


@dataclass(frozen=True)
class ServerBackend:
    """A server in this process, which ``make_server`` returns when it is first called.

    The backend is not stored: after a restart, the program creates it again. With an
    ``event_store``, a client that has lost a stream can resume it after ``retry_interval_ms``.
    """

    kind: ClassVar[str] = "server"

    make_server: Callable[[], Server[Any]] = field(repr=False)
    event_store: EventStore | None = field(default=None, repr=False)
    retry_interval_ms: int | None = None

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return an endpoint of the server."""
        return McpEndpoint(
            self.make_server,
            event_store=self.event_store,
            retry_interval_ms=self.retry_interval_ms,
        )

    def to_record(self) -> None:
        """Return None, because the backend ends with the process."""


@dataclass(frozen=True)
class AppBackend:
    """An MCPApp in this process; ``make_hosted`` creates the application that is hosted.

    The backend is not stored: after a restart, the program creates it again.
    """

    kind: ClassVar[str] = "app"

    make_hosted: Callable[[], HostedServer] = field(repr=False)

    def hosted(self, name: str, programs: Programs) -> HostedServer:
        """Return an application with the MCPApp's tools, which may block."""
        return self.make_hosted()

    def to_record(self) -> None:
        """Return None, because the backend ends with the process."""


def backend_of(value: Any) -> Backend:
    """Return the backend for an address, a server, a command, a definition, or a backend.

    Raises BackendError for anything else, and DefinitionError.
    """
    if isinstance(value, str):
        return McpBackend(value)
    if isinstance(value, (list, tuple)) and "://" not in str(value[:1]):
        return CommandBackend(tuple(value))
    if hasattr(value, "hosted") and hasattr(value, "to_record"):
        backend: Backend = value
        return backend
    if hasattr(value, "agent_as_a_tool"):
        return AppBackend(value.hosted)
    if isinstance(value, Mapping) or hasattr(value, "operations"):  # a Definition
        return OpenApiBackend.load(value)
    server = getattr(value, "_lowlevel_server", getattr(value, "server", value))
    if any(cls.__module__.startswith("mcp.server.lowlevel") for cls in type(server).__mro__):
        return ServerBackend(lambda: server)
    raise BackendError(
        f"A {type(value).__name__} is not a backend: give the address of an MCP server, an MCP "
        "server, an MCPApp, the words of a command, an McpBackend, a CommandBackend, or an "
        "OpenApiBackend.load(definition).",
        service="",
    )


def restored(record: Record) -> Backend:
    """Return the backend of a record."""
    fields = {name: value for name, value in record.items() if name != "kind"}
    return _KEPT[record["kind"]](**fields)


_KEPT: dict[str, Callable[..., Backend]] = {
    CommandBackend.kind: CommandBackend.of,
    McpBackend.kind: McpBackend,
    OpenApiBackend.kind: OpenApiBackend.of,
}


async def _connects(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with anyio.fail_after(_PATIENCE_S):
            stream = await anyio.connect_tcp(parts.hostname or "", port)
    except (OSError, TimeoutError):
        return False
    await stream.aclose()
    return True


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or not _VISIBLE.fullmatch(url):
        raise BackendError(
            f"{url!r} is not the address of a backend, for example http://HOST:PORT/mcp.",
            service="",
        )
    if "@" in parts.netloc:
        raise BackendError(
            "The address of a backend carries no user and password: give it headers.", service=""
        )
