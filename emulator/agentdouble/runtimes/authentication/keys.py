"""Callers that authenticate with an API key."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from urllib.parse import parse_qsl, unquote_plus

from starlette.requests import HTTPConnection

from agentdouble.runtimes.authentication import refusals
from agentdouble.runtimes.authentication.authorizers import ApiKey, KeyAuth
from agentdouble.runtimes.authentication.identity import Identity


def identify(runtime: str, authorizer: KeyAuth, connection: HTTPConnection) -> Identity:
    """Return the identity of the key in a request; raise AccessError."""
    presented = _presented(authorizer, connection)
    if not presented:
        raise refusals.missing(runtime, authorizer)
    found = _find(presented[0], authorizer.keys) if len(presented) == 1 else None
    if found is None:
        raise refusals.wrong_key(runtime, authorizer)
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
