"""Rewrite the addresses in the agent cards of A2A applications behind the gateway.

An application may know only its own port, and a client that followed such a card would go past the
gateway: past its authentication, its scaling and its metrics. So an interface address with the
instance's port becomes the runtime's address at the gateway, in cards of 1.0 and of 0.3. As in
redirects, an address with the caller's host that lacks the runtime's prefix gets it. Any other
address stays, and so does a card with signatures, because they cover its addresses.

These are the cards that are read by GET. The extended card that JSON-RPC answers is not rewritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.types import Message, Scope, Send

from agentdouble.addresses import is_loopback
from agentdouble.runtimes import headers
from agentdouble.runtimes.headers import Address

LARGEST = 1024 * 1024  # bytes of a card; a larger answer is passed on as it is
_CARDS = re.compile(r"(^|/)(\.well-known/agent(-card)?\.json|extendedAgentCard|v1/card)/?$")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (an address to look for, not one to bind)
_LENGTH = b"content-length"


@dataclass(frozen=True)
class Place:
    """Where a runtime answers: at ``host`` of the gateway, below ``root`` and ``prefix``.

    ``port`` is the port of the instance that answers.
    """

    scheme: str
    host: str
    root: str
    prefix: str
    port: int

    def address(self, url: str) -> str:
        """Return the address at the gateway for an interface address of the instance."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return url
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return url
        rest = url.split("://", 1)[1][len(parts.netloc) :]
        if port == self.port and _is_here(parts.hostname):
            return self._below(_without(rest, self.prefix))
        below = _without(rest, self.root)
        if parts.netloc.lower() != self.host.lower() or headers.OTHER_RUNTIME.match(below):
            return url
        return self._below(below)

    def _below(self, rest: str) -> str:
        return f"{self.scheme}://{self.host}{self.prefix}{rest}"


def is_asked_for(scope: Scope, address: Address) -> bool:
    """Return whether a request is for an agent card."""
    is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    return is_read and _CARDS.search(address.path) is not None


def uncompressed(scope: Scope) -> Scope:
    """Return a request whose answer comes as it is, because only such a card can be rewritten."""
    kept = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
    return {**scope, "headers": [*kept, (b"accept-encoding", b"identity")]}


def rewriting(scope: Scope, address: Address, port: int, send: Send) -> Send:
    """Return a ``send`` that rewrites the card that the instance at a port answers with."""
    host = headers.value(scope["headers"], b"host")
    if host is None:
        return send
    root = scope.get("root_path", "")
    place = Place(scope["scheme"], host.decode("latin-1"), root, address.prefix, port)
    return _Rewriting(place.address, send)


class _Rewriting:
    """Holds an answer back until it is whole, and sends it with other addresses."""

    def __init__(self, rewrite: Callable[[str], str], send: Send) -> None:
        self._rewrite = rewrite
        self._send = send
        self._head: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._head = message
        elif self._head is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(self._body) > LARGEST:
                await self._release(self._head, self._body, more=more)
            elif not more:
                body = rewritten(self._body, self._rewrite)
                await self._release(_with_length(self._head, body), body, more=False)

    async def _release(self, head: Message, body: bytes, *, more: bool) -> None:
        """Send what was held back; what follows passes at once."""
        self._head, self._body = None, b""
        await self._send(head)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _with_length(head: Message, body: bytes) -> Message:
    """Return the head of an answer with the length of a body, and with none for HEAD's.

    The application tells HEAD the length of its own card.
    """
    kept = [pair for pair in head["headers"] if pair[0] != _LENGTH]
    length = [(_LENGTH, str(len(body)).encode())] if body else []
    return {**head, "headers": [*kept, *length]}


def rewritten(body: bytes, rewrite: Callable[[str], str]) -> bytes:
    """Return a card with rewritten interface addresses; anything else as it is."""
    try:
        card = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(card, dict) or card.get("signatures"):
        return body
    changed = False
    for one in _with_address(card):
        address = rewrite(one["url"])
        changed = changed or address != one["url"]
        one["url"] = address
    return json.dumps(card).encode() if changed else body


def _with_address(card: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a card with an interface address: of 0.3 the card itself too."""
    found = [card]
    for name in ("supportedInterfaces", "additionalInterfaces"):
        interfaces = card.get(name)
        found += interfaces if isinstance(interfaces, list) else []
    yield from (one for one in found if isinstance(one, dict) and isinstance(one.get("url"), str))


def _is_here(host: str) -> bool:
    return is_loopback(host) or host in _EVERYWHERE


def _without(path: str, prefix: str) -> str:
    """Return a path without a prefix of whole segments."""
    rest = path.removeprefix(prefix)
    return rest if rest[:1] in ("", "/", "?", "#") else path
