"""The answers of a runtime's gateway to callers that it does not admit (RFC 6750, section 3)."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import JSONResponse, Response

from agentdouble.errors import AccessError
from agentdouble.runtimes.authentication.authorizers import Authorizer, KeyAuth
from agentdouble.runtimes.authentication.naming import surface_of

_INVALID_REQUEST = -32600  # JSON-RPC


def missing(runtime: str, authorizer: Authorizer) -> AccessError:
    """Return the refusal of a request without credentials."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} asks who calls: send {_wanted(authorizer)}.",
        status=401,
        kind="Unauthorized",
        challenge=_challenge(runtime, authorizer),
    )


def wrong_key(runtime: str, authorizer: KeyAuth) -> AccessError:
    """Return the refusal of a key that does not belong to the runtime."""
    return AccessError(
        runtime,
        f"That is no API key of the runtime {runtime!r}. It asks for {_wanted(authorizer)}.",
        status=401,
        kind="InvalidKey",
        challenge=_challenge(runtime, authorizer, "invalid_token", "No key of this runtime"),
    )


def invalid_token(runtime: str, authorizer: Authorizer, reason: str) -> AccessError:
    """Return the refusal of an invalid token; ``reason`` has nothing of the token."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} does not accept the token: {reason}.",
        status=401,
        kind="InvalidToken",
        challenge=_challenge(runtime, authorizer, "invalid_token", reason),
    )


def not_allowed(runtime: str, authorizer: Authorizer, reason: str) -> AccessError:
    """Return the refusal of a valid token that may not use this runtime."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} is not for the bearer of this token: {reason}.",
        status=403,
        kind="Forbidden",
        challenge=_challenge(runtime, authorizer, "insufficient_scope", reason),
    )


def no_issuer(runtime: str, reason: str) -> AccessError:
    """Return the refusal if the keys of the issuer cannot be fetched."""
    return AccessError(
        runtime,
        f"The runtime {runtime!r} cannot check tokens: {reason}. "
        "Try again later, or mend the discovery_url of its authorizer.",
        status=503,
        kind="IssuerUnavailable",
    )


def ambiguous(runtime: str, what: str) -> AccessError:
    """Return the refusal of a request that the application might read in another way."""
    return AccessError(runtime, f"The request is ambiguous: {what}.", status=400, kind="BadRequest")


def too_large(runtime: str, limit: int) -> AccessError:
    """Return the refusal of a body that is too large to be checked."""
    return AccessError(
        runtime,
        f"The body of a run has at most {limit} bytes here.",
        status=413,
        kind="BodyTooLarge",
    )


def no_session(runtime: str) -> AccessError:
    """Return the refusal of another identity's session, as if it did not exist."""
    return AccessError(runtime, "Session not found", status=404, kind="NotFound")


def _wanted(authorizer: Authorizer) -> str:
    if not isinstance(authorizer, KeyAuth):
        return "'Authorization: Bearer <token>' with a token of its issuer"
    if authorizer.bearer:
        return "'Authorization: Bearer <key>'"
    if authorizer.location == "Header":
        return f"'{authorizer.name}: <key>'"
    return f"the parameter {authorizer.name}=<key> in the query"


def _challenge(runtime: str, authorizer: Authorizer, error: str = "", description: str = "") -> str:
    bearer = not isinstance(authorizer, KeyAuth) or authorizer.bearer
    parts = [f'realm="{_quotable(runtime)}"']
    if error:
        parts += [f'error="{error}"', f'error_description="{_quotable(description)}"']
    return f"{'Bearer' if bearer else 'ApiKey'} {', '.join(parts)}"


def _quotable(text: str) -> str:
    return re.sub(r"[^ !#-\[\]-~]", "?", text)


def render(error: AccessError, path: str) -> Response:
    """Return the answer to a refused request for ``path`` of a runtime."""
    headers = None if error.challenge is None else {"WWW-Authenticate": error.challenge}
    return JSONResponse(_body(error, path), error.status, headers)


def _body(error: AccessError, path: str) -> dict[str, Any]:
    surface, message = surface_of(path), str(error)
    if surface == "mcp":
        failure = {"code": _INVALID_REQUEST, "message": message}
        return {"jsonrpc": "2.0", "id": None, "error": failure}
    if surface == "api":
        return {"detail": message}
    return {"error": {"message": message, "type": error.kind}}
