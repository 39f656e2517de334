"""Issuers of tokens: their keys, fetched when first needed and cached for a while.

The keys are fetched by OpenID Connect discovery: first the issuer's metadata, then the key set
that the metadata names.

All waiting requests share one fetch, which is limited in time and size and follows no redirects.
If it fails, no caller is admitted (503), and the next request fetches again. Times in a token are
compared with ``Clock.wall()``, the age of the cache with ``now()``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentdouble import on_behalf
from agentdouble.clock import Clock
from agentdouble.errors import AuthorizerError, IssuerError
from agentdouble.runtimes.authentication.authorizers import check_issuers_url
from agentdouble.threads import import_in_thread

LIFETIME = dt.timedelta(hours=1)
AGAIN = dt.timedelta(seconds=10)  # the least time between two searches for an unknown key
_MOST = 100  # issuers


@dataclass(frozen=True)
class SigningKey:
    """A public key of an issuer; it is for ``algorithm``, or for any if that is None."""

    id: str | None
    type: str
    algorithm: str | None
    key: Any


KeysById = dict["str | None", "tuple[SigningKey, ...]"]

PATIENCE_S = 5.0
_LIMIT = 256 * 1024  # bytes of a document
_MOST_KEYS = 100
_WEAKEST_RSA = 2048  # bits (RFC 7518, section 3.3)


async def fetch(url: str) -> tuple[str, KeysById]:
    """Return an issuer's name and its signing keys by id; raise IssuerError."""
    try:
        return await asyncio.wait_for(_fetch(url), PATIENCE_S)
    except asyncio.TimeoutError:
        raise IssuerError(url, f"did not answer within {PATIENCE_S:g} s") from None


async def _fetch(url: str) -> tuple[str, KeysById]:
    document = await _document(url)
    issuer, jwks_uri = document.get("issuer"), document.get("jwks_uri")
    if not isinstance(issuer, str) or not issuer or not isinstance(jwks_uri, str):
        raise IssuerError(
            url, "answered what is no discovery document: it lacks issuer or jwks_uri"
        )
    try:
        check_issuers_url(jwks_uri, "jwks_uri")
    except AuthorizerError as error:
        raise IssuerError(url, f"names no key set that can be trusted. {error}") from None
    listed = (await _document(jwks_uri)).get("keys")
    if not isinstance(listed, list):
        raise IssuerError(jwks_uri, "answered what is no key set: it has no list of keys")
    return issuer, _by_id(listed)


async def _document(url: str) -> Mapping[str, Any]:
    # Imported here, so that the double's start does not wait for them.
    await import_in_thread("httpx", "httpcore._async.http11", "jwt")
    import httpx

    try:
        found = json.loads(await _get(url))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise IssuerError(url, f"cannot be reached ({type(error).__name__})") from None
    except (ValueError, RecursionError):
        raise IssuerError(url, "answered what is no JSON") from None
    if not isinstance(found, dict):
        raise IssuerError(url, "answered what is no JSON object")
    return found


async def _get(url: str) -> bytes:
    encrypted = urlsplit(url).scheme == "https"
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    # Plain http goes to this machine only: no proxy, and no certificate store to read.
    async with (
        on_behalf.async_client(verify=encrypted, trust_env=encrypted, timeout=PATIENCE_S) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        if response.status_code != 200:
            raise IssuerError(url, f"answered with status {response.status_code}")
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > _LIMIT:
                raise IssuerError(url, f"answered with more than {_LIMIT} bytes")
    return bytes(body)


def _by_id(listed: list[Any]) -> KeysById:
    found: KeysById = {}
    for one in listed[:_MOST_KEYS]:
        key = _key(one)
        if key is not None:
            found[key.id] = (*found.get(key.id, ()), key)
    return found


def _key(data: Any) -> SigningKey | None:
    """Return a public key that verifies signatures, or None for any other key."""
    if not isinstance(data, dict) or data.get("use", "sig") != "sig":
        return None
    type_, id_, algorithm = data.get("kty"), data.get("kid"), data.get("alg")
    if type_ not in ("RSA", "EC", "OKP") or not all(_optional(one) for one in (id_, algorithm)):
        return None
    key = _public(data)
    weak = type_ == "RSA" and key is not None and key.key_size < _WEAKEST_RSA
    return None if key is None or weak else SigningKey(id_, type_, algorithm, key)


def _optional(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _public(data: Mapping[str, Any]) -> Any:
    import jwt  # with cryptography, this takes 60 ms

    try:
        return jwt.PyJWK.from_dict({k: v for k, v in data.items() if k != "d"}).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True)
class Keys:
    """The keys of an issuer by their id, fetched ``at`` a time."""

    issuer: str
    by_id: Mapping[str | None, tuple[SigningKey, ...]]
    at: dt.datetime


class Issuer:
    """One issuer of tokens, identified by the URL of its discovery document."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._known: Keys | None = None
        self._asking: asyncio.Future[Keys] | None = None

    async def keys(self, kid: str | None) -> Keys:
        """Return its keys, fetched again if they are old or lack ``kid``; raise IssuerError."""
        known = self._known
        if known is None or self._older(known, LIFETIME):
            return await self._ask()
        if kid is not None and kid not in known.by_id and self._older(known, AGAIN):
            return await self._ask()
        return known

    def _older(self, known: Keys, than: dt.timedelta) -> bool:
        return not dt.timedelta(0) <= self._clock.now() - known.at < than

    async def close(self) -> None:
        """Cancel the fetch."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> Keys:
        """Fetch once for all waiting requests, even if some of them are cancelled."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._fetch())
            self._asking.add_done_callback(_retrieve)
        return await asyncio.shield(self._asking)

    async def _fetch(self) -> Keys:
        issuer, by_id = await fetch(self._url)
        self._known = Keys(issuer, by_id, self._clock.now())
        return self._known


def _retrieve(asking: asyncio.Future[Keys]) -> None:
    """Retrieve the error, so that asyncio does not log it if no request waits any more."""
    if not asking.cancelled():
        asking.exception()


class Issuers:
    """The issuers that a double's runtimes trust; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_url: OrderedDict[str, Issuer] = OrderedDict()

    def at(self, url: str) -> Issuer:
        """Return the issuer with this discovery document."""
        found = self._by_url.setdefault(url, Issuer(url, self._clock))
        self._by_url.move_to_end(url)
        if len(self._by_url) > _MOST:
            self._by_url.popitem(last=False)
        return found

    async def close(self) -> None:
        """Cancel the fetches, and forget all issuers."""
        issuers = tuple(self._by_url.values())
        self._by_url.clear()
        await asyncio.gather(*(issuer.close() for issuer in issuers))
