"""An MCP service with its keys, and access records."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from agentdouble.errors import ServiceKeyError, ServiceNameError
from agentdouble.mcp_hosting import PREFIX
from agentdouble.mcp_services.backends import Backend
from agentdouble.state import Record, Resource, times_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SENDABLE = re.compile(r"[!-~]+")
_CODE = (
    "margin:0;padding:0;background:none;color:inherit;font-size:.9em;line-height:1.45;"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"
)


@dataclass(frozen=True)
class Key:
    """An API key of a service; ``name`` is for people."""

    name: str
    value: str = field(repr=False)


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


def make_key(service: str, name: str, value: str | None = None) -> Key:
    """Return a key with this value, or with a random one; raise ServiceKeyError."""
    if value is None:
        return Key(name, secrets.token_urlsafe(32))
    if not _SENDABLE.fullmatch(value):
        raise ServiceKeyError(
            f"A key of the MCP service {service!r} cannot be sent: it must have printable ASCII "
            "characters and no spaces.",
            service=service,
        )
    return Key(name, value)


def check_keys(service: str, keys: Iterable[Key]) -> tuple[Key, ...]:
    """Return the keys; raise ServiceKeyError if one cannot be sent, or a name is used twice."""
    checked = tuple(make_key(service, key.name, key.value) for key in keys)
    names = [key.name for key in checked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ServiceKeyError(
            f"The MCP service {service!r} would have two keys with the name {twice[0]!r}.",
            service=service,
        )
    return checked


class AccessRecord(dict[str, Any]):
    """A dict that shows ``***`` in place of its key, and so do the dicts in it.

    ``json.dumps`` writes it unchanged, with the key.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: _kept(value) for name, value in fields.items()})

    def __repr__(self) -> str:
        return f"<access record {json.dumps(_hidden(self), default=repr)}, json.dumps() of it has the key>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        told = escape(json.dumps(_hidden(self), indent=2, default=repr))
        return (
            f'<pre style="{_CODE}">{told}</pre>'
            f'<div style="opacity:.7"><code style="{_CODE}">json.dumps()</code>'
            " of it has the key</div>"
        )


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


def _kept(value: Any) -> Any:
    return AccessRecord(value) if isinstance(value, dict) else value


def _hidden(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with hidden keys."""
    return {name: _shown(name, value) for name, value in fields.items()}


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _hidden(value)
    return "Bearer ***" if name == "Authorization" else value
