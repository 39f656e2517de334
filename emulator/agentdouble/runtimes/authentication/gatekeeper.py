"""The gatekeeper of runtimes: admits a request as an identity, or refuses it before any start."""

from __future__ import annotations

import hmac
from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_plus
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from agentdouble import journal, ledger
from agentdouble.clock import Clock
from agentdouble.runtimes.authentication import authorizers
from agentdouble.runtimes.authentication.authorizers import ApiKey, Authorizer, KeyAuth
from agentdouble.runtimes.authentication.identity import Identity, Isolation, Ownership, passed_on
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.runtimes.authentication.tokens import Issuers
    from agentdouble.runtimes.runtime import Runtime


def identify(runtime: str, authorizer: KeyAuth, connection: HTTPConnection) -> Identity:
    """Return the identity of the key in a request; raise AccessError."""
    presented = _presented(authorizer, connection)
    if not presented:
        raise authorizers.missing(runtime, authorizer)
    found = _find(presented[0], authorizer.keys) if len(presented) == 1 else None
    if found is None:
        raise authorizers.wrong_key(runtime, authorizer)
    return Identity("key", found.name)


def bearers(connection: HTTPConnection) -> list[str]:
    """Return the values that a request sends as ``Authorization: Bearer``."""
    pairs = (value.partition(" ") for value in connection.headers.getlist("authorization"))
    return [rest.strip() for scheme, _, rest in pairs if scheme.lower() == "bearer" and rest]


def without_key(query: bytes, authorizer: KeyAuth) -> bytes:
    """Return the query of a request without the key."""
    if authorizer.location != "Query":
        return query
    kept = (part for part in query.split(b"&") if _name_of(part) != authorizer.name)
    return b"&".join(kept)


def _name_of(part: bytes) -> str:
    return unquote_plus(part.partition(b"=")[0].decode("latin-1"))


def _presented(authorizer: KeyAuth, connection: HTTPConnection) -> list[str]:
    if authorizer.bearer:
        return bearers(connection)
    if authorizer.location == "Header":
        return connection.headers.getlist(authorizer.name)
    query = connection.scope["query_string"].decode("latin-1")
    return [value for name, value in parse_qsl(query) if name == authorizer.name]


def _find(presented: str, keys: Sequence[ApiKey]) -> ApiKey | None:
    """Compare every key, in a time that does not depend on how similar the presented key is."""
    found = None
    for key in keys:
        if hmac.compare_digest(key.secret.encode(), presented.encode("utf-8", "surrogatepass")):
            found = key
    return found


_TOKENS = "agentdouble.runtimes.authentication.tokens"


class GatewayAuthenticator:
    """Keeps the issuers and the owners of sessions; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._issuers: Issuers | None = None
        # The owners of its sessions are removed with a runtime.
        self._owned: MutableMapping[Runtime, Ownership] = WeakKeyDictionary()

    async def admit(
        self, runtime: Runtime, path: str, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Scope, Receive, Send]:
        """Return what the application gets of a request for ``path``; raise AccessError."""
        authorizer = runtime.definition.authorizer
        if authorizer is None:
            return {**scope, "headers": passed_on(scope["headers"], None)}, receive, send
        for unknown in ("U-GATEWAY-AUTH", "U-GATEWAY-CREDENTIAL", "U-IDENTITY-HEADERS"):
            ledger.choose(unknown)  # each has only one answer
        identity = await self._identify(runtime.name, authorizer, HTTPConnection(scope))
        owned = self._owned.setdefault(runtime, Ownership())
        isolation = Isolation(runtime.name, identity, owned)
        checked = await isolation.check(path, scope, receive)
        return _application_scope(scope, identity, authorizer), checked, isolation.note(send)

    async def _identify(
        self, runtime: str, authorizer: Authorizer, connection: HTTPConnection
    ) -> Identity:
        if isinstance(authorizer, KeyAuth):
            journal.note_secret(authorizer.name)
            return identify(runtime, authorizer, connection)
        await import_in_thread(_TOKENS)  # with cryptography and httpx, this takes 100 ms
        from agentdouble.runtimes.authentication import tokens

        self._issuers = self._issuers or tokens.Issuers()
        return await tokens.identify(runtime, authorizer, connection, self._issuers, self._clock)


def _application_scope(scope: Scope, identity: Identity, authorizer: Authorizer) -> Scope:
    """Return the application's scope, which has the caller's token, but not its key."""
    if not isinstance(authorizer, KeyAuth):
        return {**scope, "headers": passed_on(scope["headers"], identity)}
    key_header = authorizer.name.encode() if authorizer.location == "Header" else b""
    return {
        **scope,
        "headers": passed_on(scope["headers"], identity, without=key_header),
        "query_string": without_key(scope["query_string"], authorizer),
    }
