"""Issuers of tokens: their name and keys, found by OpenID Connect discovery.

PyJWT's ``PyJWKClient`` keeps the keys, and decides when it fetches them again. It blocks, so it
runs in a thread. All waiting requests share one fetch, which is limited in time and size and
follows no redirects. If it fails, no caller is admitted (503), and the next request fetches again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from agentdouble.errors import AuthorizerError, IssuerError
from agentdouble.runtimes.authentication.authorizers import check_issuers_url
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
