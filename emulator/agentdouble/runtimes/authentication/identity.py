"""The identity of a caller, from whom the sessions of other identities are hidden (AUT-03)."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from agentdouble.errors import AccessError
from agentdouble.server.disconnects import replay

Header = tuple[bytes, bytes]
Thing = tuple[str, str]  # "user", "session" or "mcp", and its name on the wire

PREFIX = "x-agentdouble-identity-"
USER = b"user_id"
TIP = b"x-ve-tip-token"
_RESERVED = PREFIX.rstrip("-").encode()
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")
_MOST_THINGS = 100_000  # of all callers of a runtime; the one unused longest is forgotten
_LARGEST_RUN = 8 * 1024 * 1024  # bytes of a run's body, which is read first


@dataclass(frozen=True)
class Identity:
    """A caller: the name of its API key, or the subject of its token."""

    kind: Literal["key", "token"]
    subject: str
    issuer: str = ""
    client: str = ""

    def headers(self, *, ours: bool = True) -> list[Header]:
        """Return the headers for the application; all but plain ASCII is percent-encoded.

        Without ``ours``, there is only the user of a token.
        """
        values = vars(self).items() if ours else ()
        headers = [(f"{PREFIX}{name}".encode(), _encoded(value)) for name, value in values if value]
        return [*headers, (USER, _encoded(self.subject))] if self.kind == "token" else headers


def folded(name: bytes) -> bytes:
    """Return a header's name as seen by servers that treat ``User_Id`` like ``user-id``."""
    return re.sub(rb"[^a-z0-9]", b"-", name.lower())


def passed_on(
    headers: Iterable[Header],
    identity: Identity | None,
    identifying: Iterable[Header] = (),
    *,
    without: bytes = b"",
) -> list[Header]:
    """Return the headers for the application: the identifying ones, without the caller's imitations.

    ``without`` is a header that only the gateway reads. A caller cannot have the identity's headers
    removed on the way by naming them in ``Connection``.
    """
    reserved = {folded(TIP), folded(without)} if without else {folded(TIP)}
    if identity is not None and identity.kind == "token":  # a key stands for many users
        reserved.add(folded(USER))

    def is_ours(name: bytes) -> bool:
        return folded(name).startswith(_RESERVED) or folded(name) in reserved

    passed = [
        (name, _without(value, is_ours) if name.lower() == b"connection" else value)
        for name, value in headers
        if not is_ours(name)
    ]
    return [*passed, *identifying]


def _without(connection: bytes, is_ours: Callable[[bytes], bool]) -> bytes:
    names = (name.strip() for name in connection.split(b","))
    return b", ".join(name for name in names if not is_ours(name))


def _encoded(value: str) -> bytes:
    return quote(value, safe=_PLAIN).encode()


def segments_of(path: str) -> list[str]:
    """Return a path's segments as the most lenient application sees them."""
    return [segment for segment in unquote(path).split("/") if segment]


class Owners:
    """Which identity uses the sessions, users and MCP sessions of one runtime: the first that names one.

    With a token, the users of an API server are the token's own subject. A key stands for many
    users, and each belongs to one key.
    """

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._owners: OrderedDict[Thing, Identity] = OrderedDict()

    async def check(self, identity: Identity, path: str, scope: Scope, receive: Receive) -> Receive:
        """Check a request; return the application's ``receive``, or raise AccessError."""
        segments = segments_of(path)
        lowered = [segment.lower() for segment in segments]
        if {".", ".."} & set(segments):
            raise self._refusal(400, "The request is ambiguous: its path has dots for segments.")
        if lowered[:2] == ["debug", "trace"]:  # ADK shows all sessions
            raise self._not_found()
        users = segments[3:4] if lowered[:1] == ["apps"] and lowered[2:3] == ["users"] else []
        if scope["method"] == "POST" and lowered in (["run"], ["run_sse"]):
            messages, body = await self._body(receive)
            users += self._users(body)
            receive = replay(messages, receive)
        self._hold(identity, users, scope["headers"])
        return receive

    def note(self, identity: Identity, send: Send) -> Send:
        """Return the application's ``send``; it makes the caller the owner of a new MCP session."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                for name in _values(message["headers"], b"mcp-session-id"):
                    self._take(identity, ("mcp", name))
            await send(message)

        return noting

    def _hold(self, identity: Identity, users: list[str], headers: Iterable[Header]) -> None:
        """Refuse what belongs to other identities, and give the identity the rest."""
        if identity.kind == "token" and any(user != identity.subject for user in users):
            raise self._not_found()
        claims: list[Thing] = [("user", user) for user in users if identity.kind == "key"]
        sessions = {*_values(headers, b"session-id")}
        if len(sessions) > 1:
            raise self._refusal(400, "The request is ambiguous: it has several headers session_id.")
        claims += (("session", name) for name in sessions)
        mcp = [("mcp", name) for name in _values(headers, b"mcp-session-id")]
        if any(self._owners.get(claim, identity) != identity for claim in claims):
            raise self._not_found()
        if any(self._owners.get(claim) != identity for claim in mcp):
            raise self._not_found()
        for claim in claims:
            self._take(identity, claim)

    def _take(self, identity: Identity, claim: Thing) -> None:
        self._owners.setdefault(claim, identity)
        self._owners.move_to_end(claim)
        if len(self._owners) > _MOST_THINGS:
            self._owners.popitem(last=False)

    async def _body(self, receive: Receive) -> tuple[list[Message], bytes]:
        messages: list[Message] = []
        body, has_more = bytearray(), True
        while has_more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            messages.append(message)
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
            if len(body) > _LARGEST_RUN:
                limit = f"The body of a run has at most {_LARGEST_RUN} bytes here."
                raise self._refusal(413, limit, "BodyTooLarge")
        return messages, bytes(body)

    def _users(self, body: bytes) -> list[str]:
        """Return every user that the body of a run names, in any spelling, even if it names two."""
        try:
            pairs = json.loads(body, object_pairs_hook=list)
            users = [
                value for name, value in pairs if re.sub("[^a-z]", "", name.lower()) == "userid"
            ]
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self._refusal(400, "The body of a run is not a JSON object.") from None
        if not all(isinstance(user, str) for user in users):
            raise self._refusal(400, "The user of a run is not a string.")
        return users

    def _not_found(self) -> AccessError:
        """Return the refusal of another identity's session, as if it did not exist."""
        return self._refusal(404, "Session not found", "NotFound")

    def _refusal(self, status: int, message: str, kind: str = "BadRequest") -> AccessError:
        return AccessError(self._runtime, message, status=status, kind=kind)


def _values(headers: Iterable[Header], name: bytes) -> Iterator[str]:
    for header, value in headers:
        if folded(header) == name:
            yield value.decode("latin-1").strip()
