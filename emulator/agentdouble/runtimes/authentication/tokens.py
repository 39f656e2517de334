"""Callers that authenticate with a token of an issuer, which is found by OpenID Connect discovery (RFC 7519, 8725, 9068)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import httpx
import jwt

from agentdouble.core.threads import apart
from agentdouble.errors import IssuerError
from agentdouble.runtimes.authentication.authorizers import Authorizer, is_issuers_url
from agentdouble.runtimes.authentication.identity import Identity

PATIENCE_S = 5.0
_LARGEST = 256 * 1024  # bytes of a document
_COOLDOWN_S = 10.0  # the least time between two searches for an unknown key
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


class _KeySet(jwt.PyJWKClient):
    """Fetches an issuer's key set with the limits of this module."""

    def fetch_data(self) -> Any:
        """Return the key set; raise IssuerError."""
        return _document(self.uri)


class Issuer:
    """One issuer of tokens, identified by the URL of its discovery document; called in threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._name = ""
        self._key_set: _KeySet | None = None
        self._lock = threading.Lock()

    def claims(self, token: str, audience: tuple[str, ...]) -> Mapping[str, Any]:
        """Return the claims of a valid token; raise IssuerError or PyJWTError."""
        with self._lock:
            if self._key_set is None:
                self._discover()
            assert self._key_set is not None
            try:
                key = self._key_set.get_signing_key(_key_id(token))
            except jwt.PyJWKSetError as error:
                raise IssuerError(self._url, f"has no keys that can be used: {error}") from None
        options: Any = {
            "verify_aud": bool(audience),
            "require": ["iss", "sub", "exp"],
            "enforce_minimum_key_length": True,
        }
        return jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            issuer=self._name,
            audience=audience or None,
            leeway=_LEEWAY_S,
            options=options,
        )

    def _discover(self) -> None:
        document = _document(self._url)
        issuer, address = document.get("issuer"), document.get("jwks_uri")
        if (
            not isinstance(issuer, str)
            or not isinstance(address, str)
            or not is_issuers_url(address)
        ):
            raise IssuerError(self._url, "has no discovery document with an issuer and a jwks_uri")
        self._name = issuer
        self._key_set = _KeySet(address, lifespan=_LIFETIME_S, cooldown_duration=_COOLDOWN_S)


class Issuers(dict[str, Issuer]):
    """The issuers that a double's runtimes trust, by the URL of their discovery document."""

    def __missing__(self, url: str) -> Issuer:
        self[url] = issuer = Issuer(url)
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
        work = apart(lambda: issuers[url].claims(token, authorizer.audience))
        claims = await asyncio.wait_for(asyncio.wrap_future(work), PATIENCE_S)
    except asyncio.TimeoutError:
        error = IssuerError(url, f"did not answer within {PATIENCE_S:g} s")
        raise _unavailable(runtime, authorizer, error) from None
    except IssuerError as error:
        raise _unavailable(runtime, authorizer, error) from error
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
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


def _document(url: str) -> dict[str, Any]:
    """Return a JSON object, fetched within the limits; raise IssuerError."""
    encrypted = url.startswith("https:")
    body = bytearray()
    # plain http goes to this machine only: no proxy, and no certificate store to read
    client = httpx.Client(verify=encrypted, trust_env=encrypted, timeout=PATIENCE_S)
    try:
        with client, client.stream("GET", url, headers={"Accept": "application/json"}) as response:
            response.raise_for_status()
            for piece in response.iter_bytes():
                body += piece
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
