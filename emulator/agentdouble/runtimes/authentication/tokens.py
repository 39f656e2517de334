"""Callers that authenticate with a token of an issuer, which is found by OpenID Connect discovery (RFC 7519, 8725, 9068)."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
from starlette.requests import HTTPConnection

from agentdouble.clock import Clock
from agentdouble.errors import AuthorizerError, IssuerError
from agentdouble.runtimes.authentication import authorizers
from agentdouble.runtimes.authentication.authorizers import JwtAuth, check_issuers_url
from agentdouble.runtimes.authentication.gatekeeper import bearers
from agentdouble.runtimes.authentication.identity import Identity
from agentdouble.threads import apart

PATIENCE_S = 5.0
_LIMIT = 256 * 1024  # bytes of a document
_COOLDOWN_S = 10.0  # the least time between two searches for an unknown key
_LIFETIME_S = 3600.0
_MOST = 100  # issuers


@dataclass(frozen=True)
class Keys:
    """The name of an issuer, and its public keys that may have signed a token."""

    issuer: str
    keys: tuple[Any, ...]


class _KeySet(jwt.PyJWKClient):
    """Fetches an issuer's key set with the limits of this module."""

    def fetch_data(self) -> Any:
        """Return the key set; raise IssuerError."""
        document = _document(self.uri)
        if not isinstance(document.get("keys"), list):
            raise IssuerError(self.uri, "answered what is no key set: it has no list of keys")
        return document


class Issuer:
    """One issuer of tokens, identified by the URL of its discovery document."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._issuer = ""
        self._key_set: _KeySet | None = None
        self._fetching: Future[None] | None = None

    async def keys(self, kid: str | None) -> Keys:
        """Return its key with this id, or all keys for None; raise IssuerError.

        There is no key if the issuer has none with this id.
        """
        found = self._known(kid)
        if found is None:
            await self._fetch(kid)
            found = self._known(kid)
        return found or Keys(self._issuer, ())

    def _known(self, kid: str | None) -> Keys | None:
        """Return the keys, or None if they have to be fetched first."""
        cache = None if self._key_set is None else self._key_set.jwk_set_cache
        key_set = None if cache is None else cache.get()
        if key_set is None:
            return None
        public = [key for key in key_set.keys if key.key_type != "oct"]
        keys = [key for key in public if key.public_key_use in ("sig", None)]
        named = [key for key in keys if kid in (None, key.key_id)]
        return Keys(self._issuer, tuple(key.key for key in named)) if named else None

    async def _fetch(self, kid: str | None) -> None:
        """Fetch once for all waiting requests, even if some of them are cancelled."""
        if self._fetching is None or self._fetching.done():
            self._fetching = apart(lambda: self._load(kid))
        try:
            shared = asyncio.shield(asyncio.wrap_future(self._fetching))
            await asyncio.wait_for(shared, PATIENCE_S)
        except asyncio.TimeoutError:
            raise _silent(self._url) from None

    def _load(self, kid: str | None) -> None:
        """Fetch what is missing, or what may have a key with this id; block meanwhile."""
        try:
            if self._key_set is None:
                self._issuer, jwks_uri = _discover(self._url)
                self._key_set = _KeySet(
                    jwks_uri, lifespan=_LIFETIME_S, cooldown_duration=_COOLDOWN_S
                )
            if kid is None:
                self._key_set.get_jwk_set()
            else:
                self._key_set.get_signing_key(kid)
        except jwt.PyJWKSetError as error:
            raise IssuerError(self._url, f"has no keys that can be used: {error}") from None
        except jwt.PyJWKClientError:  # it has no key with this id
            return


class Issuers:
    """The issuers that a double's runtimes trust; belongs to one event loop."""

    def __init__(self) -> None:
        self._by_url: OrderedDict[str, Issuer] = OrderedDict()

    def at(self, url: str) -> Issuer:
        """Return the issuer with this discovery document."""
        found = self._by_url.setdefault(url, Issuer(url))
        self._by_url.move_to_end(url)
        if len(self._by_url) > _MOST:
            self._by_url.popitem(last=False)
        return found


def _discover(url: str) -> tuple[str, str]:
    """Return an issuer's name and the address of its key set; raise IssuerError."""
    document = _document(url)
    issuer, jwks_uri = document.get("issuer"), document.get("jwks_uri")
    if not isinstance(issuer, str) or not issuer or not isinstance(jwks_uri, str):
        reason = "answered what is no discovery document: it lacks issuer or jwks_uri"
        raise IssuerError(url, reason)
    try:
        check_issuers_url(jwks_uri, "jwks_uri")
    except AuthorizerError as error:
        raise IssuerError(url, f"names no key set that can be trusted. {error}") from None
    return issuer, jwks_uri


def _document(url: str) -> Mapping[str, Any]:
    """Return a JSON object, fetched within the limits; raise IssuerError."""
    try:
        found = json.loads(_get(url))
    except httpx.TimeoutException:
        raise _silent(url) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise IssuerError(url, f"cannot be reached ({type(error).__name__})") from None
    except (ValueError, RecursionError):
        raise IssuerError(url, "answered what is no JSON") from None
    if not isinstance(found, dict):
        raise IssuerError(url, "answered what is no JSON object")
    return found


def _get(url: str) -> bytes:
    encrypted = urlsplit(url).scheme == "https"
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body, deadline = bytearray(), time.monotonic() + PATIENCE_S
    # Plain http goes to this machine only: no proxy, and no certificate store to read.
    with (
        httpx.Client(verify=encrypted, trust_env=encrypted, timeout=PATIENCE_S) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        if response.status_code != 200:
            raise IssuerError(url, f"answered with status {response.status_code}")
        for piece in response.iter_raw():
            body += piece
            if len(body) > _LIMIT:
                raise IssuerError(url, f"answered with more than {_LIMIT} bytes")
            if time.monotonic() > deadline:
                raise _silent(url)
    return bytes(body)


def _silent(url: str) -> IssuerError:
    return IssuerError(url, f"did not answer within {PATIENCE_S:g} s")


# Only asymmetric algorithms: any holder of a shared secret could sign, and a public key could be
# misused as a secret.
_ALGORITHMS = frozenset(
    (
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA"),
    )
)
_LONGEST = 16 * 1024  # characters of a token
_LONGEST_NAME = 255  # characters of a subject (OpenID Connect Core, section 2)
_LEEWAY_S = 10.0  # between the clocks of two machines


class _InvalidError(Exception):
    """Why a token is invalid; the message has nothing of the token."""


async def identify(
    runtime: str, authorizer: JwtAuth, connection: HTTPConnection, issuers: Issuers, clock: Clock
) -> Identity:
    """Return the identity of the token in a request; raise AccessError."""
    presented = bearers(connection)
    if not presented:
        raise authorizers.missing(runtime, authorizer)
    try:
        if len(presented) > 1:
            raise _InvalidError("there are several")
        claims = await _claims(presented[0], authorizer, issuers)
        _check_times(claims, clock.wall().timestamp())
        identity = _identity(claims)
    except IssuerError as error:
        raise authorizers.no_issuer(
            runtime, f"its issuer at {error.url[:200]} {error.reason}"
        ) from error
    except _InvalidError as error:
        raise authorizers.invalid_token(runtime, authorizer, str(error)) from None
    if authorizer.allowed_clients and identity.client not in authorizer.allowed_clients:
        raise authorizers.not_allowed(runtime, authorizer, "its client is none of the allowed ones")
    return identity


async def _claims(token: str, authorizer: JwtAuth, issuers: Issuers) -> Mapping[str, Any]:
    header = _header(token)
    found = await issuers.at(authorizer.discovery_url).keys(header.get("kid"))
    for key in found.keys:
        try:
            return _decode(token, key, header["alg"], found.issuer, authorizer.audience)
        except (jwt.InvalidSignatureError, jwt.InvalidKeyError):  # another key, or another type
            continue
    raise _InvalidError("it is not signed by its issuer")


def _header(token: str) -> Mapping[str, Any]:
    """Return a token's header, which has not been verified yet."""
    if len(token) > _LONGEST:
        raise _InvalidError(f"it has more than {_LONGEST} characters")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise _InvalidError("it is no JSON web token") from None
    if header.get("alg") not in _ALGORITHMS:
        raise _InvalidError("it is not signed with an asymmetric algorithm")
    if "crit" in header:
        raise _InvalidError("its header asks for an extension")
    if not isinstance(header.get("kid"), (str, type(None))):
        raise _InvalidError("the id of its key is no text")
    return header


def _decode(
    token: str, key: Any, algorithm: str, issuer: str, audience: tuple[str, ...]
) -> Mapping[str, Any]:
    options: Any = {
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,  # _check_times does these by the double's clock
        "verify_aud": bool(audience),
        "require": ["iss", "sub", "exp"],
        "enforce_minimum_key_length": True,
    }
    try:
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=audience or None,
            options=options,
        )
    except (jwt.InvalidSignatureError, jwt.InvalidKeyError):
        raise
    except jwt.InvalidIssuerError:
        raise _InvalidError("it is of another issuer") from None
    except jwt.InvalidAudienceError:
        raise _InvalidError("it is meant for another audience") from None
    except jwt.MissingRequiredClaimError as error:
        raise _InvalidError(f"it lacks the claim {error.claim}") from None
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise _InvalidError("it is not well-formed") from None


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    if _time(claims, "exp", math.inf) <= now - _LEEWAY_S:
        raise _InvalidError("it has expired")
    if max(_time(claims, "nbf", 0.0), _time(claims, "iat", 0.0)) > now + _LEEWAY_S:
        raise _InvalidError("it is not valid yet")


def _time(claims: Mapping[str, Any], name: str, otherwise: float) -> float:
    if name not in claims:
        return otherwise
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        raise _InvalidError(f"its claim {name} is no time")
    return float(value)


def _identity(claims: Mapping[str, Any]) -> Identity:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_NAME:
        raise _InvalidError(f"its subject is not 1 to {_LONGEST_NAME} characters")
    clients = (claims[name] for name in ("client_id", "azp", "cid") if name in claims)
    client = next(clients, "")
    if not isinstance(client, str) or len(client) > _LONGEST_NAME:
        raise _InvalidError(f"its client is not at most {_LONGEST_NAME} characters")
    return Identity("token", subject, str(claims["iss"]), client)
