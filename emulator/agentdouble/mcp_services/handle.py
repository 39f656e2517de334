"""The MCP services and toolsets of a running double, for the program that started it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeVar

from agentdouble.mcp_services.backends import Backend, backend_of
from agentdouble.mcp_services.service import Access, Key, Service, access_record
from agentdouble.mcp_services.services import Services
from agentdouble.mcp_services.toolsets.toolsets import Exposes, Toolset, Toolsets
from agentdouble.state import Registry

A = TypeVar("A", bound=Access)
T = TypeVar("T")
Call = Callable[[Coroutine[Any, Any, Any]], Any]


class _Handle(Generic[A]):
    """The common part of services and toolsets."""

    def __init__(self, registry: Registry[A], call: Call, url: str) -> None:
        self._registry = registry
        self._call = call
        self._url = url

    def get(self, name: str) -> A:
        """Return the service or toolset with this name."""
        return self._read(lambda: self._registry.named(name))

    def list(self) -> tuple[A, ...]:
        """Return all of them, the oldest first."""
        return self._read(self._registry.all)

    def record(self, name: str) -> Mapping[str, Any]:
        """Return the access record of section 2.5; raise ServiceKeyError if no key is left."""
        return access_record(self.get(name), self._url)

    def delete(self, name: str) -> None:
        """Delete a service or toolset with its sessions; the services of a toolset stay."""
        self._call(self._registry.delete(self.get(name).id))

    def _read(self, read: Callable[[], T]) -> T:
        async def on_its_loop() -> T:
            return read()

        found: T = self._call(on_its_loop())
        return found


class McpServices(_Handle[Service]):
    """The MCP services, as ``double.mcp``; callable from any thread but the double's own.

    ::

        with Emulator() as double:
            double.mcp.create("weather", "http://127.0.0.1:9000/mcp")
            print(json.dumps(double.mcp.record("weather")))

    A backend is the address of an MCP server, an MCP server of this process (an MCPApp, or one
    of the MCP SDK), a list with the words of a command that speaks MCP over its standard input and
    output, a definition of an HTTP API as a mapping, or a value: ``McpBackend(url, headers)`` and
    ``OpenApiBackend.load(source, auth=...)`` have credentials, ``CommandBackend`` a directory. Every method raises
    RuntimeError if the double does not run, and UnknownServiceError for an unknown name.
    """

    def __init__(self, services: Services, call: Call, url: str) -> None:
        super().__init__(services, call, url)
        self._services = services

    def create(self, name: str, backend: Any, *, key: str | None = None) -> Service:
        """Create a service with one key, which is generated unless it is given.

        Raises BackendError, ServiceNameError, ServiceNameTakenError or ServiceKeyError.
        """
        keys = () if key is None else (Key("default", key),)
        behind = backend_of(backend)
        made: Service = self._call(self._services.create(name, behind, keys=keys))
        return made

    def update(self, name: str, backend: Any) -> Service:
        """Give a service another backend, which ends its sessions; raise BackendError."""
        behind: Backend = backend_of(backend)
        changed: Service = self._call(self._services.update(self.get(name).id, backend=behind))
        return changed

    def new_key(self, name: str, key_name: str, value: str | None = None) -> str:
        """Add a key to a service and return it; raise ServiceKeyError."""
        key: Key = self._call(self._services.new_key(self.get(name).id, key_name, value))
        return key.value

    def revoke(self, name: str, key_name: str) -> None:
        """Remove a key, and cancel its requests; raise ServiceKeyError."""
        self._call(self._services.revoke(self.get(name).id, key_name))


class McpToolsets(_Handle[Toolset]):
    """The toolsets, as ``double.mcp_toolsets``; callable from any thread but the double's own.

    ::

        with Emulator() as double:
            double.mcp.create("weather", "http://127.0.0.1:9000/mcp")
            double.mcp.create("maps", "http://127.0.0.1:9001/mcp")
            double.mcp_toolsets.create("travel", ["weather", "maps"])
            print(json.dumps(double.mcp_toolsets.record("travel")))

    Its tools are called ``weather__forecast``, ``maps__route``. Every method raises RuntimeError
    if the double does not run, UnknownToolsetError for an unknown name and UnknownServiceError
    for an unknown service.
    """

    def __init__(self, toolsets: Toolsets, services: Services, call: Call, url: str) -> None:
        super().__init__(toolsets, call, url)
        self._toolsets = toolsets
        self._services = services

    def create(
        self,
        name: str,
        services: Sequence[str],
        *,
        exposes: Exposes = "all",
        key: str | None = None,
    ) -> Toolset:
        """Create a toolset of services, given by their names, with one key.

        ``exposes`` is "all" (all tools) or "search-and-use": two tools that find and call the
        others. Raises ServiceNameError, ServiceNameTakenError or ServiceKeyError.
        """
        keys = () if key is None else (Key("default", key),)

        async def create() -> Toolset:
            ids = self._ids(services)
            return await self._toolsets.create(name, ids, exposes=exposes, keys=keys)

        made: Toolset = self._call(create())
        return made

    def update(self, name: str, services: Sequence[str]) -> Toolset:
        """Change the services of a toolset."""

        async def update() -> Toolset:
            id_ = self._toolsets.named(name).id
            return await self._toolsets.update(id_, service_ids=self._ids(services))

        changed: Toolset = self._call(update())
        return changed

    def _ids(self, services: Sequence[str]) -> Sequence[str]:
        return [self._services.named(name).id for name in services]
