"""The MCP services of a running double, for the program that started it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from agentdouble.mcp_services.backends import Backend, backend_of
from agentdouble.mcp_services.service import Key, Service, access_record
from agentdouble.mcp_services.services import Services

T = TypeVar("T")
Call = Callable[[Coroutine[Any, Any, Any]], Any]


class McpServices:
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
        self._services = services
        self._call = call
        self._url = url

    def get(self, name: str) -> Service:
        """Return the service with this name."""
        return self._read(lambda: self._services.named(name))

    def list(self) -> tuple[Service, ...]:
        """Return all services, the oldest first."""
        return self._read(self._services.all)

    def record(self, name: str) -> Mapping[str, Any]:
        """Return the access record of section 2.5; raise ServiceKeyError if no key is left."""
        return access_record(self.get(name), self._url)

    def delete(self, name: str) -> None:
        """Delete a service with its sessions."""
        self._call(self._services.delete(self.get(name).id))

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

    def _read(self, read: Callable[[], T]) -> T:
        async def on_its_loop() -> T:
            return read()

        value: T = self._call(on_its_loop())
        return value
