"""Ask an issuer for its keys: OpenID Connect discovery, then the key set that it names.

Bounded in time and size; no redirect is followed, for the address is what is trusted.

PyJWT's PyJWKClient takes 1.8 ms for a key set, this 7. But it bounds neither the size nor the whole
time: it read 64 MiB in 1.2 s, and waited for a slow issuer for 8 s with a timeout of 5. Key sets are
fetched seldom, so the bounds count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentdouble import on_behalf
from agentdouble.errors import AuthorizerError, IssuerError
from agentdouble.runtimes.authentication.authorizers import check_issuers_url
from agentdouble.threads import import_in_thread


@dataclass(frozen=True)
class SigningKey:
    """A public key of an issuer; ``algorithm`` is the one that it is for, None for any."""

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
    # The double's start does not wait for them.
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
    """Return a public key that verifies signatures, None for any other."""
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
    import jwt  # with cryptography behind it, 60 ms

    try:
        return jwt.PyJWK.from_dict({k: v for k, v in data.items() if k != "d"}).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
