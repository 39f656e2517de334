"""The MCP services of a double: each has a name, a backend and keys, and answers at /mcp/<name>."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from agentdouble.core.clock import Clock
from agentdouble.errors import (
    ServiceKeyError,
    ServiceNameError,
    ServiceNameTakenError,
    UnknownServiceError,
)
from agentdouble.mcp_hosting import PREFIX, Host
from agentdouble.mcp_services.backends import Backend, backend_of, restored
from agentdouble.mcp_services.commands import Programs
from agentdouble.mcp_services.keys import Key, check_keys, make_key
from agentdouble.state import Record, Registry, Resource, Store, times_of

T = TypeVar("T")

_log = logging.getLogger("agentdouble.mcp_services")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

DEFAULT_KEY = "default"

Call = Callable[[Coroutine[Any, Any, Any]], Any]


@dataclass(frozen=True, kw_only=True, repr=False)
class Service(Resource):
    """An MCP service; ``fields`` are the fields of its requests, in the platform's names."""

    backend: Backend
    keys: tuple[Key, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key_values(self) -> tuple[str, ...]:
        """The keys that its clients may send."""
        return tuple(key.value for key in self.keys)

    def __repr__(self) -> str:
        keys = ", ".join(key.name for key in self.keys) or "none"
        return f"<Service {self.name!r} {self.id}, keys: {keys}>"

    def to_record(self) -> Record | None:
        """Return the service as JSON-ready data, or None if its backend ends with the process."""
        backend = self.backend.to_record()
        if backend is None:
            return None
        # Keys are stored in plain text, not as digests, because the access record has the
        # key and can be requested again at any time. Only the file's user can read a
        # state file that the double creates.
        return {
            **(super().to_record() or {}),
            "keys": [asdict(key) for key in self.keys],
            "backend": {"kind": self.backend.kind, **backend},
        }

    @classmethod
    def of(cls, record: Record, backend: Backend) -> Service:
        """Return the service of a record."""
        keys = tuple(Key(**key) for key in record["keys"])
        return cls(**{**record, **times_of(record), "keys": keys, "backend": backend})


def check_name(name: str) -> None:
    """Raise ServiceNameError for a name that cannot be part of an address."""
    if not _NAME.fullmatch(name):
        raise ServiceNameError(name)


class AccessRecord(dict[str, Any]):
    """A dict whose repr has no key; ``json.dumps`` writes it unchanged, with the key."""

    def __repr__(self) -> str:
        servers = {
            name: {**server, "headers": {"Authorization": "Bearer ***"}}
            for name, server in self.get("mcpServers", {}).items()
        }
        return f"<access record {json.dumps(servers)}, json.dumps() of it has the key>"


def access_record(service: Service, gateway_url: str) -> AccessRecord:
    """Return ``{"mcpServers": {name: {"httpUrl": ..., "headers": ...}}}`` with the first key.

    Raises ServiceKeyError if every key has been revoked (SVC-03).
    """
    if not service.keys:
        raise ServiceKeyError(
            f"The MCP service {service.name!r} has no key left. Make a new one first.",
            service=service.name,
        )
    server = {
        "httpUrl": gateway_url.rstrip("/") + PREFIX + service.name,
        "headers": {"Authorization": f"Bearer {service.keys[0].value}"},
    }
    return AccessRecord({"mcpServers": {service.name: server}})


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
        ServiceKeyError, and ActionError if another request had the token.
        """
        check_name(name)
        checked = check_keys(name, keys or (make_key(name, DEFAULT_KEY),))
        key_pairs = [[key.name, key.value] for key in keys]
        request = [name, backend.kind, backend.to_record(), key_pairs, fields or {}]
        base = self._described(f"mcp-{secrets.token_hex(10)}", name, client_token, request)
        new = Service(**base, backend=backend, keys=checked, fields=fields or {})
        service = await self._add(new)
        for warning in getattr(backend, "warnings", ()):
            _log.warning("The MCP service %r: %s", name, warning)
        return service

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

        await self._change(service_id, lambda service: _without(service, key_name))

    def _unknown(self, value: str, by: str) -> UnknownServiceError:
        return UnknownServiceError(value, self._names())

    async def _restore(self, id_: str, record: Record) -> Service:
        service = Service.of(record, backend=restored(record["backend"]))
        await self._serve(service)
        return service

    async def _start(self, new: Service) -> None:
        if new.name in self._names() or new.name in self._host:
            raise ServiceNameTakenError(new.name)
        await self._serve(new)

    async def _stop(self, service: Service) -> None:
        await self._host.remove(service.name)

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


def _without(service: Service, key_name: str) -> Service:
    remaining = tuple(key for key in service.keys if key.name != key_name)
    if len(remaining) == len(service.keys):
        names = ", ".join(repr(key.name) for key in service.keys) or "none"
        raise ServiceKeyError(
            f"The MCP service {service.name!r} has no key {key_name!r}; it has {names}.",
            service=service.name,
        )
    return replace(service, keys=remaining)


class McpServices:
    """The MCP services, as ``double.mcp``; callable from any thread but the double's own.

    ::

        with Emulator() as double:
            double.mcp.create("weather", "http://127.0.0.1:9000/mcp")
            print(json.dumps(double.mcp.record("weather")))

    A backend is the address of an MCP server, an MCP server of this process (an MCPApp, or one of
    the MCP SDK), a list with the words of a command that speaks MCP over its standard input and
    output, a definition of an HTTP API as a mapping, or a value: ``McpBackend(url, headers)`` and
    ``OpenApiBackend.load(source, auth=...)`` have credentials, ``CommandBackend`` a directory.
    Every method raises RuntimeError if the double does not run, and UnknownServiceError for an
    unknown name.
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
        service: Service = self._call(self._services.create(name, behind, keys=keys))
        return service

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
