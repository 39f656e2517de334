"""Callers that authenticate with a token of an issuer, which is found by OpenID Connect discovery (RFC 7519, 8725, 9068)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import jwt

from agentdouble.core.clock import Clock
from agentdouble.core.threads import apart
from agentdouble.core.urls import is_https
from agentdouble.errors import IssuerError
from agentdouble.runtimes.authentication.authorizers import Authorizer, is_issuers_url
from agentdouble.runtimes.authentication.identity import Identity

PATIENCE_S = 5.0
_LARGEST = 256 * 1024  # bytes of a document
_COOLDOWN_S = 10.0  # between two searches for an unknown key, and after a failed fetch
_LIFETIME_S = 3600.0
_LONGEST = 16 * 1024  # characters of a token
_LONGEST_NAME = 255  # characters of a subject (OpenID Connect Core, section 2)
_LEEWAY_S = 10.0  # between the clocks of two machines
# Only asymmetric algorithms: any holder of a shared secret could sign, and a public key could be
# misused as a secret.
_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidSignatureError, "it is not signed by its issuer"),
    (jwt.InvalidIssuerError, "it is of another issuer"),
    (jwt.InvalidAudienceError, "it is meant for another audience"),
    (jwt.PyJWKClientError, "it is not signed by its issuer"),
    (jwt.InvalidAlgorithmError, "it is not signed with an asymmetric algorithm"),
)


@dataclass(frozen=True)
class _KeySet:
    """What an issuer publishes: its name, the address of its keys, and these by their ids."""

    issuer: str
    address: str
    keys: Mapping[str, jwt.PyJWK]


class _Moment:
    """A moment of the past, even if the platform's time stands still or is set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now, self._wall = clock.now(), clock.wall()

    def is_past(self, seconds: float) -> bool:
        """Return whether so many seconds have passed."""
        passed = max(self._clock.now() - self._now, self._clock.wall() - self._wall)
        return passed.total_seconds() >= seconds


class _Fetch:
    """A fetch of a key set in a thread of its own, for all who wait for it."""

    def __init__(self, url: str, known: _KeySet | None, clock: Clock) -> None:
        self._url = url
        self._work = apart(lambda: _fetch_keys(url, known))
        self._until_s = asyncio.get_running_loop().time() + PATIENCE_S
        self.began = _Moment(clock)

    @property
    def may_be_repeated(self) -> bool:
        """Whether it has succeeded, or failed long ago."""
        if not self._work.done():
            return False
        return self._work.exception() is None or self.began.is_past(_COOLDOWN_S)

    async def key_set(self) -> _KeySet:
        """Return the key set; raise IssuerError, including when it takes longer than PATIENCE_S."""
        patience_s = max(0.0, self._until_s - asyncio.get_running_loop().time())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._work), patience_s)
        except asyncio.TimeoutError:
            raise IssuerError(self._url, f"did not answer within {PATIENCE_S:g} s") from None
        except IssuerError as error:  # shared by all who wait
            raise IssuerError(error.url, error.reason) from None


class Issuer:
    """One issuer of tokens, identified by the URL of its discovery document; for one event loop.

    Anybody can send a token that names an unknown key. So there is one fetch at a time, in one
    thread, and one that failed is repeated only after _COOLDOWN_S.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._fetch: _Fetch | None = None
        self._known: _KeySet | None = None
        self._fetched = _Moment(clock)
        self._searched: _Moment | None = None  # for an unknown key

    async def claims(self, token: str, audience: tuple[str, ...]) -> Mapping[str, Any]:
        """Return the claims of a valid token; raise IssuerError or PyJWTError."""
        key_id = _key_id(token)
        known = await self._keys_for(key_id)
        if key_id not in known.keys:
            raise jwt.PyJWKClientError("The issuer has no such key.")
        options: Any = {
            "verify_aud": bool(audience),
            "require": ["iss", "sub", "exp"],
            "enforce_minimum_key_length": True,
        }
        claims = jwt.decode(
            token,
            known.keys[key_id],
            algorithms=_ALGORITHMS,
            issuer=known.issuer,
            audience=audience or None,
            leeway=_LEEWAY_S,
            options=options,
        )
        # jwt reads a text, too, which other servers refuse (RFC 7519, section 2: NumericDate)
        if any(type(claims.get(name, 0)) not in (int, float) for name in ("exp", "nbf", "iat")):
            raise jwt.DecodeError("a time is not a number")
        return claims

    async def _keys_for(self, key_id: str) -> _KeySet:
        """Return the key set; fetch an old one, and now and then one that lacks a key."""
        known = self._known
        if known is None or self._fetched.is_past(_LIFETIME_S):
            return await self._refreshed()
        searched = self._searched
        if key_id in known.keys or (searched is not None and not searched.is_past(_COOLDOWN_S)):
            return known
        known = await self._refreshed()
        self._searched = _Moment(self._clock)
        return known

    async def _refreshed(self) -> _KeySet:
        if self._fetch is None or self._fetch.may_be_repeated:
            self._fetch = _Fetch(self._url, self._known, self._clock)
        fetch = self._fetch
        self._known = await fetch.key_set()
        self._fetched = fetch.began
        return self._known


class Issuers(dict[str, Issuer]):
    """The issuers that a double's runtimes trust, by the URL of their discovery document."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def __missing__(self, url: str) -> Issuer:
        self[url] = issuer = Issuer(url, self._clock)
        return issuer


async def identify(
    runtime: str, authorizer: Authorizer, credentials: list[str], issuers: Issuers
) -> Identity:
    """Return the identity of the token in a request; raise AccessError."""
    assert authorizer.discovery_url is not None
    token, url = credentials[0], authorizer.discovery_url
    if len(credentials) > 1 or len(token) > _LONGEST:
        why = f"a request has one, with at most {_LONGEST} characters"
        raise _invalid(runtime, authorizer, why)
    try:
        claims = await issuers[url].claims(token, authorizer.audience)
    except IssuerError as error:
        raise _unavailable(runtime, authorizer, error) from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
        raise _invalid(runtime, authorizer, next(reasons, "it is not well-formed")) from None
    identity = _identity(claims)
    if identity is None:
        why = f"its subject and client are not 1 to {_LONGEST_NAME} characters"
        raise _invalid(runtime, authorizer, why)
    if authorizer.allowed_clients and identity.client not in authorizer.allowed_clients:
        reason = "its client is none of the allowed ones"
        message = f"The runtime {runtime!r} is not for the bearer of this token: {reason}."
        raise authorizer.refusal(
            runtime, "Forbidden", message, status=403, error="insufficient_scope", reason=reason
        )
    return identity


def _fetch_keys(url: str, known: _KeySet | None) -> _KeySet:
    """Return an issuer's key set, by its discovery document if none is known; raise IssuerError."""
    issuer, address = (known.issuer, known.address) if known else _discover(url)
    document = _document(address)
    try:
        keys = jwt.PyJWKSet.from_dict(document).keys
    except (jwt.PyJWKSetError, ValueError, TypeError, AttributeError) as error:
        raise IssuerError(url, f"has no keys that can be used: {error}") from None
    signing = {key.key_id: key for key in keys if key.public_key_use in ("sig", None)}
    return _KeySet(issuer, address, {id_: key for id_, key in signing.items() if id_})


def _discover(url: str) -> tuple[str, str]:
    """Return the name of an issuer and the address of its keys; raise IssuerError."""
    document = _document(url)
    issuer, address = document.get("issuer"), document.get("jwks_uri")
    if not isinstance(issuer, str) or not isinstance(address, str) or not is_issuers_url(address):
        raise IssuerError(url, "has no discovery document with an issuer and a jwks_uri")
    return issuer, address


def _document(url: str) -> dict[str, Any]:
    """Return a JSON object, fetched within the limits; raise IssuerError."""
    encrypted = is_https(url)
    body = bytearray()
    until_s = time.monotonic() + PATIENCE_S
    # plain http goes to this machine only: no proxy, and no certificate store to read
    client = httpx.Client(verify=encrypted, trust_env=encrypted, timeout=PATIENCE_S)
    try:
        with client, client.stream("GET", url, headers={"Accept": "application/json"}) as response:
            response.raise_for_status()
            for piece in response.iter_bytes():
                body += piece
                if time.monotonic() > until_s:
                    raise IssuerError(url, f"did not answer within {PATIENCE_S:g} s")
                if len(body) > _LARGEST:
                    raise IssuerError(url, f"answered with more than {_LARGEST} bytes")
        document = json.loads(body)
    except httpx.HTTPStatusError as error:
        raise IssuerError(url, f"answered with status {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise IssuerError(url, f"cannot be reached ({type(error).__name__})") from None
    except (ValueError, RecursionError):
        raise IssuerError(url, "answered with something else than JSON") from None
    if not isinstance(document, dict):
        raise IssuerError(url, "answered with something else than a JSON object")
    return document


def _key_id(token: str) -> str:
    """Return the id of the key that has signed a token, which has not been verified yet."""
    header = jwt.get_unverified_header(token)
    if header.get("alg") not in _ALGORITHMS:
        raise jwt.InvalidAlgorithmError
    key_id = header.get("kid")
    if not isinstance(key_id, str):
        raise jwt.DecodeError("it names no key")
    return key_id


def _identity(claims: Mapping[str, Any]) -> Identity | None:
    clients = (claims[name] for name in ("client_id", "azp", "cid") if name in claims)
    subject, client = claims["sub"], next(clients, "")
    for name in (subject, client):
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            return None
    return Identity("token", subject, str(claims["iss"]), client) if subject else None


def _invalid(runtime: str, authorizer: Authorizer, reason: str) -> Exception:
    message = f"The runtime {runtime!r} does not accept the token: {reason}."
    return authorizer.refusal(
        runtime, "InvalidToken", message, error="invalid_token", reason=reason
    )


def _unavailable(runtime: str, authorizer: Authorizer, error: IssuerError) -> Exception:
    message = (
        f"The runtime {runtime!r} cannot check tokens: its issuer at {error.url[:200]} "
        f"{error.reason}. Try again later, or correct the discovery_url of its authorizer."
    )
    return authorizer.refusal(runtime, "IssuerUnavailable", message, status=503)
