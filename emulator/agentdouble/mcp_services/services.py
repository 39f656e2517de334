"""The registry of MCP services: made, found, changed and deleted at run time, and kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentdouble.clock import Clock
from agentdouble.errors import ServiceKeyError, ServiceNameTakenError, UnknownServiceError
from agentdouble.mcp_hosting import Host
from agentdouble.mcp_services.backends import Backend
from agentdouble.mcp_services.service import Key, Service, check_keys, check_name, make_key
from agentdouble.state import Change, MemoryStore, Store, unbroken

KIND = "mcp_service"
DEFAULT_KEY = "default"


class Services:
    """The MCP services of a double; everything is called on its event loop.

    ``host`` answers ``/mcp/<service_name>`` for them.
    """

    def __init__(self, clock: Clock, host: Host, store: Store | None = None) -> None:
        self._clock = clock
        self._host = host
        self._store = store or MemoryStore()
        self._services: dict[str, Service] = {}
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Take up the services that the store has kept."""
        kept = [Service.of(record) for record in (await self._store.load(KIND)).values()]
        for service in sorted(kept, key=lambda service: service.created_at):
            await self._take_up(service)

    def all(self) -> tuple[Service, ...]:
        """Return every service, the oldest first."""
        return tuple(self._services.values())

    def get(self, service_id: str) -> Service:
        """Return the service of that id; raise UnknownServiceError."""
        found = self._services.get(service_id)
        if found is None:
            raise UnknownServiceError(service_id, self._names())
        return found

    def named(self, name: str) -> Service:
        """Return the service of that name; raise UnknownServiceError."""
        found = next((one for one in self._services.values() if one.name == name), None)
        if found is None:
            raise UnknownServiceError(name, self._names())
        return found

    def made_by(self, client_token: str | None) -> Service | None:
        """Return the service that a request with this token has made."""
        if client_token is None:
            return None
        return next((s for s in self._services.values() if s.client_token == client_token), None)

    async def create(
        self,
        name: str,
        backend: Backend,
        *,
        keys: Sequence[Key] = (),
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
    ) -> Service:
        """Make a service, or return the one that the same request with the same token has made.

        Without ``keys`` it gets one. Raises ServiceNameError, ServiceNameTakenError,
        ServiceKeyError, and ValueError if another request had the token.
        """
        check_name(name)
        checked = check_keys(name, keys or (make_key(name, DEFAULT_KEY),))
        now = self._clock.now()
        new = Service(
            id=f"mcp-{secrets.token_hex(10)}",
            name=name,
            backend=backend,
            keys=checked,
            created_at=now,
            updated_at=now,
            fields=fields or {},
            client_token=client_token,
            request=_digest(name, backend, keys, fields or {}),
        )
        return await unbroken(self._create(new))

    async def _create(self, new: Service) -> Service:
        async with self._changing:
            made = self._made_by(new.client_token, str(new.request))
            if made is not None:
                return made
            if new.name in self._names() or new.name in self._host:
                raise ServiceNameTakenError(new.name)
            await self._take_up(new)
            try:
                await self._keep(new)
            except BaseException:
                await self._leave(new)
                raise
            return new

    async def update(
        self,
        service_id: str,
        *,
        backend: Backend | None = None,
        keys: Sequence[Key] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Service:
        """Change a service: another backend ends its sessions, a key that is left out its own.

        Raises UnknownServiceError and ServiceKeyError.
        """

        def change(service: Service) -> Service:
            return replace(
                service,
                backend=backend or service.backend,
                keys=service.keys if keys is None else check_keys(service.name, keys),
                fields={**service.fields, **(fields or {})},
            )

        return await unbroken(self._change(service_id, change))

    async def new_key(self, service_id: str, name: str, value: str | None = None) -> Key:
        """Give a service one more key; raise UnknownServiceError and ServiceKeyError."""
        key = make_key(self.get(service_id).name, name, value)

        def change(service: Service) -> Service:
            return replace(service, keys=check_keys(service.name, (*service.keys, key)))

        await unbroken(self._change(service_id, change))
        return key

    async def revoke(self, service_id: str, key_name: str) -> None:
        """Take a key away, and end what it does; raise UnknownServiceError, ServiceKeyError."""

        def change(service: Service) -> Service:
            return replace(service, keys=_without(service, key_name))

        await unbroken(self._change(service_id, change))

    async def _change(self, service_id: str, change: Callable[[Service], Service]) -> Service:
        async with self._changing:
            service = self.get(service_id)
            changed = replace(change(service), updated_at=self._clock.now())
            await self._keep(changed)
            await self._exchange(service, changed)
        return changed

    async def delete(self, service_id: str) -> None:
        """End a service with its sessions; raise UnknownServiceError."""
        await unbroken(self._delete(service_id))

    async def _delete(self, service_id: str) -> None:
        async with self._changing:
            service = self.get(service_id)
            await self._store.write([Change(KIND, service_id)], _nothing)
            await self._leave(service)

    async def reset(self) -> None:
        """Delete every service."""
        for service_id in list(self._services):
            await self.delete(service_id)

    async def _take_up(self, service: Service) -> None:
        hosted = service.backend.hosted(service.name)
        await self._host.add(service.name, hosted, service.key_values)
        self._services[service.id] = service

    async def _leave(self, service: Service) -> None:
        del self._services[service.id]
        await self._host.remove(service.name)

    async def _exchange(self, before: Service, after: Service) -> None:
        if after.backend == before.backend:
            self._host.rekey(after.name, after.key_values)
            self._services[after.id] = after
            return
        await self._host.remove(before.name)
        await self._take_up(after)

    async def _keep(self, service: Service) -> None:
        """Keep a service; one without a record may have had a backend that was kept."""
        await self._store.write([Change(KIND, service.id, service.to_record())], _nothing)

    def _names(self) -> list[str]:
        return [service.name for service in self._services.values()]

    def _made_by(self, client_token: str | None, request: str) -> Service | None:
        made = self.made_by(client_token)
        if made is not None and made.request != request:
            raise ValueError(f"another request, which made the service {made.id!r}, had it")
        return made


def _nothing() -> None:
    """Take nothing back: memory follows what is kept, one change at a time."""


def _without(service: Service, key_name: str) -> tuple[Key, ...]:
    kept = tuple(key for key in service.keys if key.name != key_name)
    if len(kept) == len(service.keys):
        names = ", ".join(repr(key.name) for key in service.keys) or "none"
        raise ServiceKeyError(
            f"The MCP service {service.name!r} has no key {key_name!r}; it has {names}.",
            service=service.name,
        )
    return kept


def _digest(name: str, backend: Backend, keys: Sequence[Key], fields: Mapping[str, Any]) -> str:
    given = [[key.name, key.value] for key in keys]
    text = json.dumps([name, backend.kind, backend.to_record(), given, fields], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
