"""The keys of MCP services, and the access record that has one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentdouble.errors import ServiceKeyError

_SENDABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Key:
    """An API key of a service; ``name`` is for people."""

    name: str
    value: str = field(repr=False)


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
