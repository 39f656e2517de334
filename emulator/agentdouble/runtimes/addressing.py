"""Which runtime a request is for, and what of its address the runtime gets to see."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.types import Scope

PREFIX = "/runtimes/"
_PLACE = PREFIX.strip("/")


@dataclass(frozen=True)
class Address:
    """The runtime ``name``, which answers below ``prefix``, and the ``path`` of a request there.

    ``path`` is as the caller wrote it: ``%2F``, ``//`` and the like mean what they mean to the
    application. ``name`` is empty where the request is for no runtime.
    """

    name: str
    prefix: str
    path: str

    def target(self, query: bytes) -> bytes:
        """Return what an instance is asked for."""
        return self.path.encode("latin-1") + (b"?" + query if query else b"")


def read(scope: Scope) -> Address:
    """Return where a request is to go."""
    root: str = scope.get("root_path", "")
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    raw = raw.partition(b"?")[0]  # some clients in this process leave the query there
    place, name, path = (*raw.removeprefix(root.encode())[1:].split(b"/", 2), b"", b"")[:3]
    found = unquote(name) if unquote(place) == _PLACE else ""
    return Address(found, f"{root}{PREFIX}{found}", "/" + path.decode("latin-1"))
