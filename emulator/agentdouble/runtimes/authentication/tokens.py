"""Callers that authenticate with a token of an issuer (RFC 7519, RFC 8725, RFC 9068)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jwt
from starlette.requests import HTTPConnection

from agentdouble.clock import Clock
from agentdouble.errors import IssuerError
from agentdouble.runtimes.authentication import refusals
from agentdouble.runtimes.authentication.authorizers import JwtAuth
from agentdouble.runtimes.authentication.identity import Identity
from agentdouble.runtimes.authentication.issuers import Issuers
from agentdouble.runtimes.authentication.keys import bearers

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
        raise refusals.missing(runtime, authorizer)
    try:
        if len(presented) > 1:
            raise _InvalidError("there are several")
        claims = await _claims(presented[0], authorizer, issuers)
        _check_times(claims, clock.wall().timestamp())
        identity = _identity(claims)
    except IssuerError as error:
        raise refusals.no_issuer(
            runtime, f"its issuer at {error.url[:200]} {error.reason}"
        ) from error
    except _InvalidError as error:
        raise refusals.invalid_token(runtime, authorizer, str(error)) from None
    if authorizer.allowed_clients and identity.client not in authorizer.allowed_clients:
        raise refusals.not_allowed(runtime, authorizer, "its client is none of the allowed ones")
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
