"""Traffic: what the checks asked of a platform, what they made there, and who answered.

The owner of a live platform wants to know. Exchanges are counted where all clients of this process
record them. What an application makes by itself while it answers is not seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from doublecheck.notebook_repr import counted
from doublecheck.wire.event_stream import data_of

if TYPE_CHECKING:
    from doublecheck.wire.exchanges import Exchange

TRAFFIC = "traffic"
INSTANCE, API_SESSION, MCP_SESSION, TASK = "sandbox instance", "API session", "MCP session", "task"
_ADMIN = "/_emulator/"
_SESSIONS = re.compile(r"/apps/([^/]+)/users/([^/]+)/sessions(?:/[^/]+)?")
_SESSION_ID = re.compile(rb'"SessionId"\s*:\s*"([^"]+)"')
_MAKING = ("Action=InvokeTool", "Action=CreateSession")
_SENDING = ("message/send", "message/stream", "SendMessage", "SendStreamingMessage")


@dataclass(frozen=True)
class Asked:
    """What a run asked of a platform: the number of requests, and of what they made, by kind.

    ``addresses`` are those that answered the checks of each surface.
    """

    requests: int = 0
    made: Mapping[str, int] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """The requests, and what they made: ``12 requests (2 API sessions)``."""
        made = ", ".join(counted(count, kind) for kind, count in self.made.items())
        return f"{counted(self.requests, 'request')}{f' ({made})' if made else ''}"

    @property
    def surfaces_by_address(self) -> Mapping[str, Sequence[str]]:
        """The surfaces that each address answered for."""
        found: dict[str, list[str]] = {}
        for surface, addresses in self.addresses.items():
            for address in addresses:
                found.setdefault(address, []).append(surface.replace("_", " "))
        return found


@dataclass
class Traffic:
    """The number of requests, the ids of what they made by kind, and the addresses by surface.

    An address counts once ``checking`` says that the surface is there.
    """

    requests: int = 0
    checking: bool = False
    made: dict[str, set[str]] = field(default_factory=dict)
    addresses: dict[str, set[str]] = field(default_factory=dict)

    def note(self, surface: str, exchange: Exchange) -> None:
        """Count an exchange of a check of a surface; requests about a double itself do not count."""
        if _ADMIN in exchange.request.url:
            return
        self.requests += 1
        if exchange.status is None:
            return
        parts = urlsplit(exchange.request.url)
        if self.checking:
            self.addresses.setdefault(surface, set()).add(f"{parts.scheme}://{parts.netloc}")
        for kind, id_ in _made(exchange):
            self.made.setdefault(kind, set()).add(id_)

    def add(self, other: Traffic) -> None:
        """Add what another check asked."""
        self.requests += other.requests
        for own, more in ((self.made, other.made), (self.addresses, other.addresses)):
            for key, values in more.items():
                own.setdefault(key, set()).update(values)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it: pytest-xdist's workers send it to their controller."""
        listed = partial(map, lambda item: (item[0], sorted(item[1])))
        return {
            "requests": self.requests,
            "made": dict(listed(self.made.items())),
            "addresses": dict(listed(self.addresses.items())),
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Traffic:
        """Return what ``to_dict`` wrote."""
        made, addresses = (
            {key: set(values) for key, values in told[name].items()}
            for name in ("made", "addresses")
        )
        return cls(told["requests"], made=made, addresses=addresses)

    def summed(self) -> Asked:
        """Return the numbers of a run."""
        return Asked(
            self.requests,
            {kind: len(self.made[kind]) for kind in sorted(self.made)},
            {surface: tuple(sorted(found)) for surface, found in sorted(self.addresses.items())},
        )


def _made(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Yield the kind and the id of each thing that an answer says was made, or used."""
    if exchange.status is None or exchange.status >= 300 or exchange.request.method != "POST":
        return
    url = urlsplit(exchange.request.url)
    if any(action in url.query for action in _MAKING):
        yield from ((INSTANCE, one.decode()) for one in _SESSION_ID.findall(exchange.body)[:1])
    elif named := _SESSIONS.fullmatch(url.path):
        id_ = next((str(one["id"]) for one in _documents(exchange) if one.get("id")), "")
        yield API_SESSION, "/".join((*named.groups(), id_))
    elif _method(exchange) == "initialize":
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        if "mcp-session-id" in headers:
            yield MCP_SESSION, headers["mcp-session-id"]
    elif _method(exchange) in _SENDING:
        yield from ((TASK, one) for one in map(_task, _documents(exchange)) if one)


def _method(exchange: Exchange) -> str | None:
    """Return the method of a request of JSON-RPC."""
    document = _parsed(exchange.request.content)
    method = document.get("method") if isinstance(document, dict) else None
    return method if isinstance(method, str) else None


def _documents(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Yield the objects in an answer: its body, or those in its events."""
    for text in data_of(exchange.body) or [exchange.body.decode("utf-8", "replace")]:
        document = _parsed(text)
        if isinstance(document, dict):
            yield document


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _task(answer: Mapping[str, Any]) -> str | None:
    """Return the id of the task in a result of A2A."""
    result = answer.get("result")
    if not isinstance(result, dict):
        return None
    kinds = ("task", "statusUpdate", "artifactUpdate", "message")
    found = next((result[kind] for kind in kinds if isinstance(result.get(kind), dict)), result)
    id_ = found.get("taskId") or (found.get("id") if "status" in found else None)
    return id_ if isinstance(id_, str) else None
