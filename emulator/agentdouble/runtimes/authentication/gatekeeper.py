"""The gatekeeper of runtimes: admits a request as an identity, or refuses it before any start.

Callers authenticate once. A runtime with an authorizer does not require the double's ``api_key``
in addition, because a client has only one ``Authorization``; Host and Origin are still checked. A
key is not passed on to the application. A token is passed on, because the application uses it to
act for its caller.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from agentdouble import journal, ledger
from agentdouble.clock import Clock
from agentdouble.runtimes.authentication import keys
from agentdouble.runtimes.authentication.authorizers import Authorizer, KeyAuth
from agentdouble.runtimes.authentication.identity import Identity, Ownership, passed_on
from agentdouble.runtimes.authentication.isolation import Isolation
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from agentdouble.runtimes.authentication.issuers import Issuers

_TOKENS = "agentdouble.runtimes.authentication.tokens"


class _Definition(Protocol):
    @property
    def authorizer(self) -> Authorizer | None: ...


class Guarded(Protocol):
    """The part of a runtime that the gatekeeper uses."""

    @property
    def name(self) -> str: ...
    @property
    def definition(self) -> _Definition: ...


@dataclass(frozen=True)
class Admission:
    """An admitted request, with its identity, or None if any caller is admitted.

    ``scope``, ``receive`` and ``send`` are those that the application gets.
    """

    identity: Identity | None
    scope: Scope
    receive: Receive
    send: Send


class GatewayAuthenticator:
    """Keeps the issuers and the owners of sessions; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._issuers: Issuers | None = None
        # The owners of its sessions are removed with a runtime.
        self._owned: MutableMapping[Guarded, Ownership] = WeakKeyDictionary()

    async def admit(
        self, runtime: Guarded, path: str, scope: Scope, receive: Receive, send: Send
    ) -> Admission:
        """Admit a request for ``path`` of a runtime; raise AccessError."""
        authorizer = runtime.definition.authorizer
        if authorizer is None:
            told: Scope = {**scope, "headers": passed_on(scope["headers"], None)}
            return Admission(None, told, receive, send)
        for unknown in ("U-GATEWAY-AUTH", "U-GATEWAY-CREDENTIAL", "U-IDENTITY-HEADERS"):
            ledger.choose(unknown)  # each has only one answer
        identity = await self._identify(runtime.name, authorizer, HTTPConnection(scope))
        owned = self._owned.setdefault(runtime, Ownership())
        isolation = Isolation(runtime.name, identity, owned)
        checked = await isolation.check(path, scope, receive)
        told = _told(scope, identity, authorizer)
        return Admission(identity, told, checked, isolation.note(send))

    async def _identify(
        self, runtime: str, authorizer: Authorizer, connection: HTTPConnection
    ) -> Identity:
        if isinstance(authorizer, KeyAuth):
            journal.note_secret(authorizer.name)
            return keys.identify(runtime, authorizer, connection)
        await import_in_thread(_TOKENS)  # with cryptography and httpx, this takes 100 ms
        from agentdouble.runtimes.authentication import issuers, tokens

        self._issuers = self._issuers or issuers.Issuers()
        return await tokens.identify(runtime, authorizer, connection, self._issuers, self._clock)


def _told(scope: Scope, identity: Identity, authorizer: Authorizer) -> Scope:
    """Return the application's scope, which has the caller's token, but not its key."""
    if not isinstance(authorizer, KeyAuth):
        return {**scope, "headers": passed_on(scope["headers"], identity)}
    key_header = authorizer.name.encode() if authorizer.location == "Header" else b""
    return {
        **scope,
        "headers": passed_on(scope["headers"], identity, without=key_header),
        "query_string": keys.without_key(scope["query_string"], authorizer),
    }
