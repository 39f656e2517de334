"""Who a caller is, and the headers that tell a runtime's application, which no client can forge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

Header = tuple[bytes, bytes]

PREFIX = "x-agentdouble-identity-"
USER = b"user_id"
_RESERVED = PREFIX.rstrip("-").encode()
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")


@dataclass(frozen=True)
class Identity:
    """A caller: the name of its API key, or the subject of its token."""

    kind: Literal["key", "token"]
    subject: str
    issuer: str = ""
    client: str = ""

    @property
    def user(self) -> str | None:
        """The user that it speaks for; None where a key speaks for many."""
        return self.subject if self.kind == "token" else None

    def headers(self) -> list[Header]:
        """Return what the application is told; what is no plain ASCII is percent-encoded."""
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
    """Return a header's name as the servers see it that take ``User_Id`` for ``user-id``."""
    return re.sub(rb"[^a-z0-9]", b"-", name.lower())


def passed_on(
    headers: Iterable[Header], identity: Identity | None, *, without: bytes = b""
) -> list[Header]:
    """Return the headers for the application: the identity's, and nothing that imitates them.

    ``without`` is the header that the gateway alone reads. A caller cannot have the others taken
    off on the way either, by naming them in ``Connection``.
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
