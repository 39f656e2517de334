"""The toolsets of a running double, for the program that started it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from agentdouble.mcp_services.records import access_record
from agentdouble.mcp_services.service import Key
from agentdouble.mcp_services.services import Services
from agentdouble.mcp_services.toolsets.toolset import Exposes, Toolset
from agentdouble.mcp_services.toolsets.toolsets import Toolsets

T = TypeVar("T")
Call = Callable[[Coroutine[Any, Any, Any]], Any]


class McpToolsets:
    """What ``double.mcp_toolsets`` is; callable from any thread but the double's own.

    ::

        with Emulator() as double:
            double.mcp.create("weather", "http://127.0.0.1:9000/mcp")
            double.mcp.create("maps", "http://127.0.0.1:9001/mcp")
            double.mcp_toolsets.create("travel", ["weather", "maps"])
            print(json.dumps(double.mcp_toolsets.record("travel")))

    Its tools are called ``weather__forecast``, ``maps__route``. Every method raises RuntimeError
    if the double does not run, UnknownToolsetError for an unknown name and UnknownServiceError
    for a service that is not there.
    """

    def __init__(self, toolsets: Toolsets, services: Services, call: Call, url: str) -> None:
        self._toolsets = toolsets
        self._services = services
        self._call = call
        self._url = url

    def create(
        self,
        name: str,
        services: Sequence[str],
        *,
        exposes: Exposes = "all",
        key: str | None = None,
    ) -> Toolset:
        """Make a toolset of services, by their names, with one key.

        ``exposes`` is "all" (tools) or "search-and-use": two tools to find and call them by.
        Raises ServiceNameError, ServiceNameTakenError or ServiceKeyError.
        """
        keys = () if key is None else (Key("default", key),)

        async def create() -> Toolset:
            ids = self._ids(services)
            return await self._toolsets.create(name, ids, exposes=exposes, keys=keys)

        made: Toolset = self._call(create())
        return made

    def get(self, name: str) -> Toolset:
        """Return a toolset."""
        found: Toolset = self._call(self._read(lambda: self._toolsets.named(name)))
        return found

    def list(self) -> tuple[Toolset, ...]:
        """Return every toolset, the oldest first."""
        found: tuple[Toolset, ...] = self._call(self._read(self._toolsets.all))
        return found

    def record(self, name: str) -> Mapping[str, Any]:
        """Return the access record of section 2.5; raise ServiceKeyError if no key is left."""
        return access_record(self.get(name), self._url)

    def update(self, name: str, services: Sequence[str]) -> Toolset:
        """Make it a toolset of these services."""

        async def update() -> Toolset:
            id_ = self._toolsets.named(name).id
            return await self._toolsets.update(id_, service_ids=self._ids(services))

        changed: Toolset = self._call(update())
        return changed

    def delete(self, name: str) -> None:
        """End a toolset with its sessions; its services stay."""
        self._call(self._toolsets.delete(self.get(name).id))

    def _ids(self, services: Sequence[str]) -> Sequence[str]:
        return [self._services.named(name).id for name in services]

    async def _read(self, read: Callable[[], T]) -> T:
        return read()
