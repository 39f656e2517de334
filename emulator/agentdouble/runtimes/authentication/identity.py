"""The identity of a caller, and the sessions of other identities, which it does not find (AUT-03)."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from agentdouble import strict_json
from agentdouble.runtimes.authentication import authorizers

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


_LONGEST = 1024  # characters of a name
Surface = Literal["simple", "api", "mcp"]

_RUNS = ("run", "run_sse", "run_live")


class AmbiguousError(ValueError):
    """The application might read this in another way than the gateway."""


class Fields(list[tuple[str, Any]]):
    """A JSON object as it was written, as a list of pairs."""

    def all(self, *names: str) -> list[Any]:
        """Return the values of fields with these names, in any spelling, without null."""
        return [value for name, value in self if plain(name) in names and value is not None]


def read(body: bytes) -> Any:
    """Return parsed JSON, with its objects as Fields; raise AmbiguousError."""
    try:
        return strict_json.loads(body, object_pairs_hook=Fields)
    except (ValueError, RecursionError) as error:
        raise AmbiguousError(f"its body is no JSON: {error}") from None


def plain(name: str) -> str:
    """Return a name in lower case and without separators."""
    return re.sub(r"[^a-z]", "", name.casefold())


def checked(names: Iterable[Any]) -> Iterator[str]:
    """Yield the names that are not empty; raise AmbiguousError for an invalid name."""
    for name in names:
        if not isinstance(name, str):
            raise AmbiguousError("it has a name that is no text")
        if len(name) > _LONGEST:
            raise AmbiguousError(f"it names what has more than {_LONGEST} characters")
        if name:
            yield name


@dataclass(frozen=True)
class Named:
    """The names in a request: ``users`` of the API server, ``callers`` from the user header."""

    users: frozenset[str] = frozenset()
    callers: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    mcp: frozenset[str] = frozenset()


def surface_of(path: str) -> Surface:
    """Return the interface that a path belongs to, which decides the format of a refusal."""
    first = next(iter(segments_of(path)), "")
    if first == "mcp":
        return "mcp"
    return "api" if first in ("apps", *_RUNS) else "simple"


def in_head(path: str, scope: Scope) -> Named:
    """Return the names in path, query and headers; raise AmbiguousError."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    return Named(
        frozenset(checked((*_in_path(path), *_in_query(path, scope)))),
        frozenset(checked(_header(headers, b"user-id"))),
        frozenset(checked(_header(headers, b"session-id"))),
        frozenset(checked(_header(headers, b"mcp-session-id"))),
    )


def is_run(path: str, method: str) -> bool:
    """Return whether a request runs an agent, for the user that its body names."""
    return method == "POST" and segments_of(path) in (["run"], ["run_sse"])


def in_run(body: bytes) -> Named:
    """Return the names in the body of a run; raise AmbiguousError."""
    found = read(body)
    users = found.all("userid") if isinstance(found, Fields) else []
    return Named(frozenset(checked(users)))


def _in_path(path: str) -> Iterator[str]:
    """Yield the user of ``/apps/<app>/users/<user>/...``."""
    if {".", ".."} & set(re.split(r"[/\\]", unquote(path))):
        raise AmbiguousError("its path has dots for segments")
    raw = [one for one in path.split("/") if one]
    match segments_of(path):
        case ["apps", _, "users", _, *_]:
            if any(re.search(r"[/\\]", unquote(one)) for one in raw[:6]):
                raise AmbiguousError("its path has an encoded slash")
            yield unquote(raw[3])


def _in_query(path: str, scope: Scope) -> Iterator[str]:
    """Yield the user of ``/run_live?user_id=...``."""
    if segments_of(path) == ["run_live"]:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        yield from (value for name, value in query if plain(name) == "userid")


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> Iterator[str]:
    values = {value.decode("latin-1").strip() for key, value in headers if folded(key) == name}
    if len(values) > 1:
        raise AmbiguousError(f"it has several headers {name.decode()}")
    yield from values


def segments_of(path: str) -> list[str]:
    """Return a path's segments as the most lenient application sees them."""
    return [one.casefold() for one in unquote(path).split("/") if one]


_LONGEST_RUN = 8 * 1024 * 1024  # bytes of a run's body, which is read first


class Isolation:
    """Limits one identity's requests to one runtime to the identity's own sessions."""

    def __init__(self, runtime: str, identity: Identity, owned: Ownership) -> None:
        self._runtime = runtime
        self._identity = identity
        self._owned = owned

    async def check(self, path: str, scope: Scope, receive: Receive) -> Receive:
        """Check a request; return the application's ``receive``, or raise AccessError."""
        self._require(segments_of(path)[:2] != ["debug", "trace"])  # ADK shows all sessions
        try:
            self._hold(in_head(path, scope))
            if not is_run(path, scope.get("method", "")):
                return receive
            body = await self._body(receive)
            self._hold(in_run(body))
        except AmbiguousError as error:
            raise authorizers.ambiguous(self._runtime, str(error)) from None
        return _again(body, receive)

    def note(self, send: Send) -> Send:
        """Return the application's ``send``, which gives the caller an MCP session that begins."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                ids = (v for n, v in message["headers"] if n.lower() == b"mcp-session-id")
                self._take(Thing("mcp", one.decode("latin-1")) for one in ids)
            await send(message)

        return noting

    def _take(self, things: Iterable[Thing]) -> None:
        self._owned.take(self._identity, things)

    def _hold(self, named: Named) -> None:
        """Refuse names that belong to other identities, and give the identity the rest.

        A key stands for many users, and the headers of its requests may name any of them. The API
        server looks sessions up by user, so each user there belongs to one identity.
        """
        users = [Thing("user", name) for name in named.users]
        callers = [Thing("caller", name) for name in named.callers]
        sessions = [Thing("session", name) for name in named.sessions]
        if self._identity.user is not None:
            self._require(all(user.name == self._identity.user for user in users))
            users = callers = []
        of_users = [Thing("user", caller.name) for caller in callers]
        as_callers = [Thing("caller", user.name) for user in users]
        for thing in (*users, *as_callers, *of_users, *sessions):
            self._require(not self._owned.is_anothers(thing, self._identity))
        for name in named.mcp:
            self._require(self._owned.owner(Thing("mcp", name)) == self._identity)
        self._take((*users, *callers, *sessions))

    def _require(self, own: bool) -> None:
        if not own:
            raise authorizers.no_session(self._runtime)

    async def _body(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _LONGEST_RUN:
                raise authorizers.too_large(self._runtime, _LONGEST_RUN)
        return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that first gives a body that was already read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again
