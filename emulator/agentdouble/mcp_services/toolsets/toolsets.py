"""The registry of toolsets: created, found, changed and deleted at run time, and stored."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentdouble.clock import Clock
from agentdouble.errors import ServiceNameTakenError, UnknownToolsetError
from agentdouble.imports import import_now
from agentdouble.mcp_hosting import Endpoint, Host
from agentdouble.mcp_services.service import Access, Key, Service, check_keys, check_name, make_key
from agentdouble.mcp_services.services import DEFAULT_KEY, Services
from agentdouble.state import Record, Registry, Store
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.mcp_services.toolsets.asking import Member


Exposes = Literal["all", "search-and-use"]
EXPOSES: tuple[Exposes, ...] = get_args(Exposes)
_SERVER = "agentdouble.mcp_services.toolsets.server"


@dataclass(frozen=True, kw_only=True, repr=False)
class Toolset(Access):
    """Several MCP services as one endpoint.

    It ``exposes`` all tools of its services, or the two tools that find and call them.
    """

    service_ids: tuple[str, ...]
    exposes: Exposes


class Toolsets(Registry[Toolset]):
    """The toolsets of a double; ``host`` answers ``/mcp/<toolset_name>`` for them.

    A service and a toolset cannot have the same name. A deleted service leaves its toolsets.
    """

    kind = "mcp_toolset"
    noun = "toolset"

    def __init__(
        self, clock: Clock, host: Host, services: Services, store: Store | None = None
    ) -> None:
        super().__init__(clock, store)
        self._host = host
        self._services = services

    def services(self, toolset: Toolset) -> tuple[Service, ...]:
        """Return the existing services of a toolset."""
        there = {service.id: service for service in self._services.all()}
        return tuple(there[one] for one in toolset.service_ids if one in there)

    async def tools(
        self, toolset: Toolset, *, merged: bool = True
    ) -> Mapping[str, list[dict[str, Any]] | str]:
        """Return the tools of each service by its id, as JSON, or the reason if it is dead.

        The tools have their names in the toolset (``merged``), or those in their service.
        """
        await import_in_thread(_SERVER)
        from agentdouble.mcp_services.toolsets.listing import list_all

        listing = await list_all(self._members(toolset.id), [])
        found: dict[str, list[dict[str, Any]] | str] = {}
        for service in self.services(toolset):
            listed = [one for one in listing.tools if one.member.name == service.name]
            tools = [one.shown() if merged else one.tool for one in listed]
            shown = [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
            ]
            found[service.id] = listing.missing.get(service.name, shown)
        return found

    async def create(
        self,
        name: str,
        service_ids: Sequence[str],
        *,
        exposes: Exposes = "all",
        keys: Sequence[Key] = (),
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
    ) -> Toolset:
        """Create a toolset, or return the one that the same request with the same token created.

        Without ``keys`` the toolset gets one. Raises ServiceNameError, ServiceNameTakenError,
        ServiceKeyError, UnknownServiceError, and ClientTokenError if another request had the token.
        """
        check_name(name)
        checked = check_keys(name, keys or (make_key(name, DEFAULT_KEY),))
        ids = tuple(dict.fromkeys(service_ids))
        given = [[key.name, key.value] for key in keys]
        request = [name, ids, exposes, given, fields or {}]
        said = self._described(f"mcpts-{secrets.token_hex(10)}", name, client_token, request)
        new = Toolset(**said, service_ids=ids, exposes=exposes, keys=checked, fields=fields or {})
        return await self._add(new)

    async def update(
        self,
        toolset_id: str,
        *,
        service_ids: Sequence[str] | None = None,
        keys: Sequence[Key] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Toolset:
        """Change a toolset; cancel the requests of removed keys.

        Raises UnknownToolsetError, UnknownServiceError and ServiceKeyError.
        """

        def change(toolset: Toolset) -> Toolset:
            ids = toolset.service_ids if service_ids is None else tuple(dict.fromkeys(service_ids))
            self._check_services(set(ids) - set(toolset.service_ids))
            return replace(
                toolset,
                service_ids=ids,
                keys=toolset.keys if keys is None else check_keys(toolset.name, keys),
                fields={**toolset.fields, **(fields or {})},
            )

        return await self._change(toolset_id, change)

    def _unknown(self, asked: str, by: str) -> UnknownToolsetError:
        return UnknownToolsetError(asked, [toolset.name for toolset in self._items.values()])

    async def _restore(self, id_: str, record: Record) -> Toolset:
        toolset = Toolset.of(record, service_ids=tuple(record["service_ids"]))
        await self._serve(toolset)
        return toolset

    async def _start(self, new: Toolset) -> None:
        if new.name in self._host or new.name in (one.name for one in self._services.all()):
            raise ServiceNameTakenError(new.name)
        self._check_services(new.service_ids)
        await self._serve(new)

    async def _resume(self, one: Toolset, record: Record | None) -> Toolset:
        await self._serve(one)
        return one

    async def _stop(self, gone: Toolset) -> None:
        await self._host.remove(gone.name)

    async def _exchange(self, before: Toolset, after: Toolset) -> None:
        self._host.rekey(after.name, after.key_values)

    async def _serve(self, toolset: Toolset) -> None:
        def make_server() -> Any:
            import_now(_SERVER)
            from agentdouble.mcp_services.toolsets.server import make_server

            return make_server(toolset.name, toolset.exposes, lambda: self._members(toolset.id))

        await self._host.add(toolset.name, Endpoint(make_server), toolset.key_values)

    def _members(self, toolset_id: str) -> Sequence[Member]:
        from agentdouble.mcp_services.toolsets.asking import Member

        services = self.services(self._items[toolset_id])
        return [Member(one.name, self._host.behind(one.name)) for one in services]

    def _check_services(self, service_ids: Sequence[str] | set[str]) -> None:
        for one in service_ids:
            self._services.get(one)
