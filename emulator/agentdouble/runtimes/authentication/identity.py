"""The identity of a caller, and the headers that report it, which no client can forge."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote

Header = tuple[bytes, bytes]

PREFIX = "x-agentdouble-identity-"
USER = b"user_id"
_RESERVED = PREFIX.rstrip("-").encode()
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")
_MOST_IDENTITIES = 10_000
_MOST_THINGS = 10_000  # of one identity


@dataclass(frozen=True)
class Identity:
    """A caller: the name of its API key, or the subject of its token."""

    kind: Literal["key", "token"]
    subject: str
    issuer: str = ""
    client: str = ""

    @property
    def user(self) -> str | None:
        """The user that the identity stands for; None for a key, which stands for many users."""
        return self.subject if self.kind == "token" else None

    def headers(self) -> list[Header]:
        """Return the headers for the application; all but plain ASCII is percent-encoded."""
        facts = {
            "kind": self.kind,
            "subject": self.subject,
            "issuer": self.issuer,
            "client": self.client,
        }
        told = [
            (f"{PREFIX}{name}".encode(), _encoded(value)) for name, value in facts.items() if value
        ]
        return told if self.user is None else [*told, (USER, _encoded(self.user))]


def folded(name: bytes) -> bytes:
    """Return a header's name as servers see it that treat ``User_Id`` like ``user-id``."""
    return re.sub(rb"[^a-z0-9]", b"-", name.lower())


def passed_on(
    headers: Iterable[Header], identity: Identity | None, *, without: bytes = b""
) -> list[Header]:
    """Return the headers for the application: the identity's, without imitations by the caller.

    ``without`` is a header that only the gateway reads. A caller cannot have the identity's headers
    removed on the way by naming them in ``Connection``.
    """
    user = identity is not None and identity.user is not None
    reserved = {*((folded(USER),) if user else ()), *((folded(without),) if without else ())}

    def is_ours(name: bytes) -> bool:
        return folded(name).startswith(_RESERVED) or folded(name) in reserved

    kept = [
        (name, _without(value, is_ours) if name.lower() == b"connection" else value)
        for name, value in headers
        if not is_ours(name)
    ]
    return kept if identity is None else [*kept, *identity.headers()]


def _without(connection: bytes, is_ours: Callable[[bytes], bool]) -> bytes:
    named = (one.strip() for one in connection.split(b","))
    return b", ".join(one for one in named if not is_ours(one))


def _encoded(value: str) -> bytes:
    return quote(value, safe=_PLAIN).encode()


class Thing(NamedTuple):
    """A user or session of an identity, by its name on the wire."""

    kind: Literal["user", "caller", "session", "mcp"]
    name: str


class Ownership:
    """What the identities own that call one runtime, limited in number.

    An identity loses a thing (the least recently used one) only by its own requests, or after ten
    thousand other identities have called.
    """

    def __init__(self) -> None:
        self._owners: dict[Thing, Identity] = {}
        self._things: OrderedDict[Identity, OrderedDict[Thing, None]] = OrderedDict()

    def owner(self, thing: Thing) -> Identity | None:
        """Return the owner of a thing, or None."""
        return self._owners.get(thing)

    def is_anothers(self, thing: Thing, identity: Identity) -> bool:
        """Return whether another identity owns the thing."""
        return self._owners.get(thing, identity) != identity

    def take(self, identity: Identity, things: Iterable[Thing]) -> None:
        """Give an identity those of the things that have no owner."""
        for thing in things:
            if not self.is_anothers(thing, identity):
                self._take(identity, thing)

    def _take(self, identity: Identity, thing: Thing) -> None:
        owned = self._things.setdefault(identity, OrderedDict())
        self._things.move_to_end(identity)
        owned[thing] = None
        owned.move_to_end(thing)
        self._owners[thing] = identity
        if len(owned) > _MOST_THINGS:
            self._owners.pop(owned.popitem(last=False)[0])
        if len(self._things) > _MOST_IDENTITIES:
            for forgotten in self._things.popitem(last=False)[1]:
                self._owners.pop(forgotten)
