"""The registry of toolsets: made, found, changed and deleted at run time, and kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentdouble.clock import Clock
from agentdouble.errors import ServiceNameTakenError, UnknownToolsetError
from agentdouble.imports import import_now
from agentdouble.mcp_hosting import Endpoint, Host
from agentdouble.mcp_services.service import Key, Service, check_keys, check_name, make_key
from agentdouble.mcp_services.services import DEFAULT_KEY, Services
from agentdouble.mcp_services.toolsets.toolset import Exposes, Toolset
from agentdouble.state import Change, MemoryStore, Store, unbroken
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.mcp_services.toolsets.asking import Member

KIND = "mcp_toolset"
_SERVER = "agentdouble.mcp_services.toolsets.server"


class Toolsets:
    """The toolsets of a double; everything is called on its event loop.

    ``host`` answers ``/mcp/<toolset_name>`` for them: no service has the name of a toolset. A
    service that is deleted is no longer in them.
    """

    def __init__(
        self, clock: Clock, host: Host, services: Services, store: Store | None = None
    ) -> None:
        self._clock = clock
        self._host = host
        self._services = services
        self._store = store or MemoryStore()
        self._toolsets: dict[str, Toolset] = {}
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Take up the toolsets that the store has kept."""
        kept = [Toolset.of(record) for record in (await self._store.load(KIND)).values()]
        for toolset in sorted(kept, key=lambda toolset: toolset.created_at):
            await self._take_up(toolset)

    def all(self) -> tuple[Toolset, ...]:
        """Return every toolset, the oldest first."""
        return tuple(self._toolsets.values())

    def get(self, toolset_id: str) -> Toolset:
        """Return the toolset of that id; raise UnknownToolsetError."""
        found = self._toolsets.get(toolset_id)
        if found is None:
            raise UnknownToolsetError(toolset_id, self._names())
        return found

    def named(self, name: str) -> Toolset:
        """Return the toolset of that name; raise UnknownToolsetError."""
        found = next((one for one in self._toolsets.values() if one.name == name), None)
        if found is None:
            raise UnknownToolsetError(name, self._names())
        return found

    def services(self, toolset: Toolset) -> tuple[Service, ...]:
        """Return the services of a toolset that are there."""
        there = {service.id: service for service in self._services.all()}
        return tuple(there[one] for one in toolset.service_ids if one in there)

    async def tools(
        self, toolset: Toolset, *, merged: bool = True
    ) -> Mapping[str, list[dict[str, Any]] | str]:
        """Return the tools of each service by its id, as JSON; of one that is dead, the reason.

        They are called as behind the toolset's address (``merged``), or as the service has them.
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

    def made_by(self, client_token: str | None) -> Toolset | None:
        """Return the toolset that a request with this token has made."""
        if client_token is None:
            return None
        return next((t for t in self._toolsets.values() if t.client_token == client_token), None)

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
        """Make a toolset, or return the one that the same request with the same token has made.

        Without ``keys`` it gets one. Raises ServiceNameError, ServiceNameTakenError,
        ServiceKeyError, UnknownServiceError, and ValueError if another request had the token.
        """
        check_name(name)
        checked = check_keys(name, keys or (make_key(name, DEFAULT_KEY),))
        ids = tuple(dict.fromkeys(service_ids))
        now = self._clock.now()
        new = Toolset(
            id=f"mcpts-{secrets.token_hex(10)}",
            name=name,
            service_ids=ids,
            exposes=exposes,
            keys=checked,
            created_at=now,
            updated_at=now,
            fields=fields or {},
            client_token=client_token,
            request=_digest(name, ids, exposes, keys, fields or {}),
        )
        return await unbroken(self._create(new))

    async def _create(self, new: Toolset) -> Toolset:
        async with self._changing:
            made = self._made_by(new.client_token, str(new.request))
            if made is not None:
                return made
            self._check(new.name, new.service_ids)
            await self._take_up(new)
            try:
                await self._keep(new)
            except BaseException:
                await self._leave(new)
                raise
            return new

    async def update(
        self,
        toolset_id: str,
        *,
        service_ids: Sequence[str] | None = None,
        keys: Sequence[Key] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Toolset:
        """Change a toolset; a key that is left out ends what it does.

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

        return await unbroken(self._change(toolset_id, change))

    async def delete(self, toolset_id: str) -> None:
        """End a toolset with its sessions, not its services; raise UnknownToolsetError."""
        await unbroken(self._delete(toolset_id))

    async def _delete(self, toolset_id: str) -> None:
        async with self._changing:
            toolset = self.get(toolset_id)
            await self._store.write([Change(KIND, toolset_id)], _nothing)
            await self._leave(toolset)

    async def reset(self) -> None:
        """Delete every toolset."""
        for toolset_id in list(self._toolsets):
            await self.delete(toolset_id)

    async def _change(self, toolset_id: str, change: Callable[[Toolset], Toolset]) -> Toolset:
        async with self._changing:
            changed = replace(change(self.get(toolset_id)), updated_at=self._clock.now())
            await self._keep(changed)
            self._host.rekey(changed.name, changed.key_values)
            self._toolsets[toolset_id] = changed
        return changed

    async def _keep(self, toolset: Toolset) -> None:
        await self._store.write([Change(KIND, toolset.id, toolset.to_record())], _nothing)

    async def _leave(self, toolset: Toolset) -> None:
        del self._toolsets[toolset.id]
        await self._host.remove(toolset.name)

    async def _take_up(self, toolset: Toolset) -> None:
        def make_server() -> Any:
            import_now(_SERVER)
            from agentdouble.mcp_services.toolsets.server import make_server

            return make_server(toolset.name, toolset.exposes, lambda: self._members(toolset.id))

        await self._host.add(toolset.name, Endpoint(make_server), toolset.key_values)
        self._toolsets[toolset.id] = toolset

    def _members(self, toolset_id: str) -> Sequence[Member]:
        from agentdouble.mcp_services.toolsets.asking import Member

        services = self.services(self._toolsets[toolset_id])
        return [Member(one.name, self._host.behind(one.name)) for one in services]

    def _check(self, name: str, service_ids: Sequence[str]) -> None:
        if name in self._host or name in (one.name for one in self._services.all()):
            raise ServiceNameTakenError(name)
        self._check_services(service_ids)

    def _check_services(self, service_ids: Sequence[str] | set[str]) -> None:
        for one in service_ids:
            self._services.get(one)

    def _names(self) -> list[str]:
        return [toolset.name for toolset in self._toolsets.values()]

    def _made_by(self, client_token: str | None, request: str) -> Toolset | None:
        made = self.made_by(client_token)
        if made is not None and made.request != request:
            raise ValueError(f"another request, which made the toolset {made.id!r}, had it")
        return made


def _nothing() -> None:
    """Take nothing back: memory follows what is kept, one change at a time."""


def _digest(
    name: str, ids: Sequence[str], exposes: str, keys: Sequence[Key], fields: Mapping[str, Any]
) -> str:
    given = [[key.name, key.value] for key in keys]
    text = json.dumps([name, list(ids), exposes, given, fields], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
