"""What an MCP service is: a name, keys, and what stands behind."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agentdouble.errors import ServiceKeyError, ServiceNameError
from agentdouble.mcp_services.backends import Backend
from agentdouble.state import Record, Resource, times_of

if TYPE_CHECKING:
    from typing_extensions import Self

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SENDABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Key:
    """An API key of a service; ``name`` is for people."""

    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class Access(Resource):
    """What has an address and keys of its own: a service or a toolset.

    ``fields`` are what its maker said of it, in the platform's names.
    """

    keys: tuple[Key, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key_values(self) -> tuple[str, ...]:
        """What its clients may send."""
        return tuple(key.value for key in self.keys)

    def __repr__(self) -> str:
        keys = ", ".join(key.name for key in self.keys) or "none"
        return f"<{type(self).__name__} {self.name!r} {self.id}, keys: {keys}>"

    def to_record(self) -> Record | None:
        """Return it as JSON-ready data."""
        return {**(super().to_record() or {}), "keys": [asdict(key) for key in self.keys]}

    @classmethod
    def of(cls, record: Record, **own: Any) -> Self:
        """Return the one of a record, with what its kind has of its ``own``."""
        keys = tuple(Key(**key) for key in record["keys"])
        return cls(**{**record, **times_of(record), "keys": keys, **own})


@dataclass(frozen=True, kw_only=True, repr=False)
class Service(Access):
    """An MCP service."""

    backend: Backend

    def to_record(self) -> Record | None:
        """Return the service as JSON-ready data; None if its backend goes with the process."""
        backend = self.backend.to_record()
        if backend is None:
            return None
        kept = {"kind": self.backend.kind, **backend}
        return {**(super().to_record() or {}), "backend": kept}


def check_name(name: str) -> None:
    """Raise ServiceNameError for a name that cannot stand in an address."""
    if not _NAME.fullmatch(name):
        raise ServiceNameError(name)


def make_key(service: str, name: str, value: str | None = None) -> Key:
    """Return a key of that value, or of one that nobody can guess; raise ServiceKeyError."""
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
    """Return the keys; raise ServiceKeyError if one cannot be sent, or a name is there twice."""
    checked = tuple(make_key(service, key.name, key.value) for key in keys)
    names = [key.name for key in checked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ServiceKeyError(
            f"The MCP service {service!r} would have two keys with the name {twice[0]!r}.",
            service=service,
        )
    return checked
