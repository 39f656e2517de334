"""The gatekeeper of runtimes: admits a request as an identity, or refuses it before any start."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_plus
from weakref import WeakKeyDictionary

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.core.threads import import_in_thread, run_in_thread
from agentdouble.journal.entries import note_secret
from agentdouble.runtimes.authentication.authorizers import Authorizer
from agentdouble.runtimes.authentication.identity import TIP, Header, Identity, Owners, passed_on

if TYPE_CHECKING:
    from agentdouble.runtimes.authentication.tip_tokens import TipIssuer
    from agentdouble.runtimes.authentication.tokens import Issuers
    from agentdouble.runtimes.runtime import Runtime

_TOKENS = "agentdouble.runtimes.authentication.tokens"
_TIP_TOKENS = "agentdouble.runtimes.authentication.tip_tokens"


def presented(authorizer: Authorizer, connection: HTTPConnection) -> list[str]:
    """Return the credentials in a request, at the place where the runtime expects one."""
    if authorizer.bearer:
        pairs = (value.partition(" ") for value in connection.headers.getlist("authorization"))
        return [token.strip() for scheme, _, token in pairs if scheme.lower() == "bearer" and token]
    if authorizer.location == "Header":
        return connection.headers.getlist(authorizer.name)
    query = connection.scope["query_string"].decode("latin-1")
    return [value for name, value in parse_qsl(query) if name == authorizer.name]


def by_key(runtime: str, authorizer: Authorizer, credentials: list[str]) -> Identity:
    """Return the identity of the key in a request; raise AccessError.

    Every key is compared, and the time does not depend on how similar the presented key is.
    """
    match = None
    credential = credentials[0].encode("utf-8", "surrogatepass") if len(credentials) == 1 else b""
    for key in authorizer.keys:
        if hmac.compare_digest(key.secret.encode(), credential):
            match = key
    if match is None:
        message = (
            f"That is not an API key of the runtime {runtime!r}. It asks for {authorizer.wanted()}."
        )
        reason = "No key of this runtime"
        raise authorizer.refusal(
            runtime, "InvalidKey", message, error="invalid_token", reason=reason
        )
    return Identity("key", match.name)


class GatewayAuthenticator:
    """Keeps the issuers and the owners of sessions; belongs to one event loop.

    ``url`` returns the double's own address, which issues tokens for applications.
    """

    def __init__(self, clock: Clock, url: Callable[[], str]) -> None:
        self._clock = clock
        self._url = url
        self._tip_issuer: TipIssuer | None = None
        self._making_issuer = asyncio.Lock()
        self._issuers: Issuers | None = None
        # the owners of its sessions are removed with a runtime
        self._owners: MutableMapping[Runtime, Owners] = WeakKeyDictionary()

    async def admit(
        self, runtime: Runtime, path: str, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Scope, Receive, Send]:
        """Return what the application gets of a request for ``path``; raise AccessError."""
        authorizer = runtime.definition.authorizer
        if authorizer is None:
            return {**scope, "headers": passed_on(scope["headers"], None)}, receive, send
        for unknown in ("U-GATEWAY-AUTH", "U-GATEWAY-CREDENTIAL"):
            ledger.choose(unknown)  # each has only one answer
        identity = await self._identify(runtime.name, authorizer, HTTPConnection(scope))
        owners = self._owners.setdefault(runtime, Owners(runtime.name))
        receive = await owners.check(identity, path, scope, receive)
        identifying = await self._identifying(identity, runtime.name)
        application_scope = _application_scope(scope, identity, identifying, authorizer)
        return application_scope, receive, owners.note(identity, send)

    async def _identifying(self, identity: Identity, runtime: str) -> list[Header]:
        """Return the headers that tell the application who calls (U-IDENTITY-HEADERS)."""
        answer = ledger.choose("U-IDENTITY-HEADERS")
        headers = identity.headers(ours=answer != "tip-token-alone")
        if answer == "x-agentdouble-identity":
            return headers
        issuer = await self.tip_issuer()
        return [*headers, (TIP, issuer.token(identity, runtime).encode())]

    async def tip_issuer(self) -> TipIssuer:
        """Return the issuer of the tokens for applications."""
        async with self._making_issuer:
            if self._tip_issuer is None:
                await import_in_thread(_TIP_TOKENS)
                from agentdouble.runtimes.authentication.tip_tokens import (  # slow: cryptography
                    TipIssuer,
                )

                url = self._url()
                self._tip_issuer = await run_in_thread(lambda: TipIssuer(url, self._clock))
            return self._tip_issuer

    async def _identify(
        self, runtime: str, authorizer: Authorizer, connection: HTTPConnection
    ) -> Identity:
        if authorizer.keys:
            note_secret(authorizer.name)
        credentials = presented(authorizer, connection)
        if not credentials:
            message = f"The runtime {runtime!r} asks who calls: send {authorizer.wanted()}."
            raise authorizer.refusal(runtime, "Unauthorized", message)
        if authorizer.keys:
            return by_key(runtime, authorizer, credentials)
        await import_in_thread(_TOKENS)
        from agentdouble.runtimes.authentication import tokens  # slow: cryptography, 0.1 s

        self._issuers = self._issuers or tokens.Issuers(self._clock)
        return await tokens.identify(runtime, authorizer, credentials, self._issuers)


def _application_scope(
    scope: Scope, identity: Identity, identifying: list[Header], authorizer: Authorizer
) -> Scope:
    """Return the application's scope, which has the caller's token, but not its key."""
    by_header = bool(authorizer.keys) and authorizer.location == "Header"
    without = authorizer.name.encode() if by_header else b""
    headers = passed_on(scope["headers"], identity, identifying, without=without)
    if not authorizer.keys or by_header:
        return {**scope, "headers": headers}
    parameters = scope["query_string"].decode("latin-1").split("&")
    others = [
        text for text in parameters if unquote_plus(text.partition("=")[0]) != authorizer.name
    ]
    return {**scope, "headers": headers, "query_string": "&".join(others).encode("latin-1")}
