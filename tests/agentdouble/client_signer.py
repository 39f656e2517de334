"""A signer written like the clients' own, without code of the double."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

FOUR = "content-type;host;x-content-sha256;x-date"
SCOPE = "20261121/cn-beijing/agentkit/request"


def canonical(
    signed: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    method: str = "POST",
    path: str = "/",
    query: str = "Action=InvokeTool&Version=2025-10-30",
    payload: str | None = None,
) -> str:
    """Return the canonical request; ``payload`` replaces the hash of the body."""
    lines = [method, path, query]
    lines += [f"{name}:{headers[name]}" for name in signed.split(";")]
    lines += ["", signed, payload or hashlib.sha256(body).hexdigest()]
    return "\n".join(lines)


def string_to_sign(canonical: str, x_date: str, scope: str = SCOPE) -> str:
    """Return the string to sign for a canonical request."""
    return f"HMAC-SHA256\n{x_date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"


def signature(to_sign: str, secret: str, scope: str = SCOPE) -> str:
    """Return the signature in hex."""
    key = secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return hmac.new(key, to_sign.encode(), "sha256").hexdigest()


def authorization(access_key: str, signed: str, hexadecimal: str, scope: str = SCOPE) -> str:
    """Return the Authorization header."""
    return (
        f"HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={signed}, "
        f"Signature={hexadecimal}"
    )
