"""The registry of MCP services: created, found, changed and deleted at run time, and stored."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentdouble.clock import Clock
from agentdouble.errors import ServiceKeyError, ServiceNameTakenError, UnknownServiceError
from agentdouble.mcp_hosting import Host
from agentdouble.mcp_services.backends import Backend, restored
from agentdouble.mcp_services.service import Key, Service, check_keys, check_name, make_key
from agentdouble.mcp_services.stdio import Programs
from agentdouble.state import Record, Registry, Store

DEFAULT_KEY = "default"


class Services(Registry[Service]):
    """The MCP services of a double.

    ``host`` answers ``/mcp/<service_name>`` for them; ``programs`` starts those that are commands.
    """

    kind = "mcp_service"
    noun = "service"

    def __init__(
        self, clock: Clock, host: Host, programs: Programs, store: Store | None = None
    ) -> None:
        super().__init__(clock, store)
        self._host = host
        self._programs = programs

    async def create(
        self,
        name: str,
        backend: Backend,
        *,
        keys: Sequence[Key] = (),
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
    ) -> Service:
        """Create a service, or return the one that the same request with the same token created.

        Without ``keys`` the service gets one. Raises ServiceNameError, ServiceNameTakenError,
        ServiceKeyError, and ClientTokenError if another request had the token.
        """
        check_name(name)
        checked = check_keys(name, keys or (make_key(name, DEFAULT_KEY),))
        given = [[key.name, key.value] for key in keys]
        request = [name, backend.kind, backend.to_record(), given, fields or {}]
        said = self._described(f"mcp-{secrets.token_hex(10)}", name, client_token, request)
        new = Service(**said, backend=backend, keys=checked, fields=fields or {})
        return await self._add(new)

    async def update(
        self,
        service_id: str,
        *,
        backend: Backend | None = None,
        keys: Sequence[Key] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Service:
        """Change a service; another backend ends its sessions, a removed key ends its own.

        Raises UnknownServiceError and ServiceKeyError.
        """

        def change(service: Service) -> Service:
            return replace(
                service,
                backend=backend or service.backend,
                keys=service.keys if keys is None else check_keys(service.name, keys),
                fields={**service.fields, **(fields or {})},
            )

        return await self._change(service_id, change)

    async def new_key(self, service_id: str, name: str, value: str | None = None) -> Key:
        """Add a key to a service; raise UnknownServiceError and ServiceKeyError."""
        key = make_key(self.get(service_id).name, name, value)

        def change(service: Service) -> Service:
            return replace(service, keys=check_keys(service.name, (*service.keys, key)))

        await self._change(service_id, change)
        return key

    async def revoke(self, service_id: str, key_name: str) -> None:
        """Remove a key, and cancel its requests; raise UnknownServiceError and ServiceKeyError."""

        def change(service: Service) -> Service:
            return replace(service, keys=_without(service, key_name))

        await self._change(service_id, change)

    def _unknown(self, asked: str, by: str) -> UnknownServiceError:
        return UnknownServiceError(asked, self._names())

    async def _restore(self, id_: str, record: Record) -> Service:
        service = Service.of(record, backend=restored(record["backend"]))
        await self._serve(service)
        return service

    async def _start(self, new: Service) -> None:
        if new.name in self._names() or new.name in self._host:
            raise ServiceNameTakenError(new.name)
        await self._serve(new)

    async def _resume(self, one: Service, record: Record | None) -> Service:
        await self._serve(one)
        return one

    async def _stop(self, gone: Service) -> None:
        await self._host.remove(gone.name)

    async def _exchange(self, before: Service, after: Service) -> None:
        if after.backend == before.backend:
            self._host.rekey(after.name, after.key_values)
            return
        await self._host.remove(before.name)
        await self._serve(after)

    async def _serve(self, service: Service) -> None:
        hosted = service.backend.hosted(service.name, self._programs)
        await self._host.add(service.name, hosted, service.key_values)

    def _names(self) -> list[str]:
        return [service.name for service in self._items.values()]


def _without(service: Service, key_name: str) -> tuple[Key, ...]:
    kept = tuple(key for key in service.keys if key.name != key_name)
    if len(kept) == len(service.keys):
        names = ", ".join(repr(key.name) for key in service.keys) or "none"
        raise ServiceKeyError(
            f"The MCP service {service.name!r} has no key {key_name!r}; it has {names}.",
            service=service.name,
        )
    return kept
