"""Tokens that propagate a caller's identity to a hosted application, and the keys that verify them.

Applications find such a token in the header ``X-Ve-TIP-Token``. It is a JWT of the double (RFC
7519), whose key is new in each double. Discovery and keys are public, below ``guard.IDENTITY``.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from agentdouble.core.clock import Clock
from agentdouble.runtimes.authentication.identity import Identity
from agentdouble.server import guard

LIFETIME_S = 3600
_ALGORITHM = "RS256"  # the one that the platform's own clients accept by default
_KEY_SIZE = 2048


class TipIssuer:
    """Signs the tokens of one double at ``url``; making one takes 0.1 s, for its key."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.issuer = f"{url}{guard.IDENTITY}"
        self._url = url
        self._clock = clock
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_SIZE)
        self._key_id = uuid.uuid4().hex

    def token(self, identity: Identity, runtime: str) -> str:
        """Return a token of a caller for a runtime, by the platform's time."""
        now = int(self._clock.now().timestamp())
        claims = {
            "iss": self.issuer,
            "sub": identity.subject,
            "aud": runtime,
            "iat": now,
            "exp": now + LIFETIME_S,
            "jti": uuid.uuid4().hex,
            "kind": identity.kind,
        }
        if identity.client:
            claims["client_id"] = identity.client
        if identity.issuer:
            claims["idp"] = identity.issuer
        return jwt.encode(claims, self._key, _ALGORITHM, {"kid": self._key_id})

    def keys(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key Set (RFC 7517)."""
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        described = {"kid": self._key_id, "use": "sig", "alg": _ALGORITHM}
        return {"keys": [{"kty": key["kty"], "n": key["n"], "e": key["e"], **described}]}

    def configuration(self) -> dict[str, Any]:
        """Return the discovery document (OpenID Connect Discovery, section 3)."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self._url}{guard.IDENTITY_KEYS}",
            "id_token_signing_alg_values_supported": [_ALGORITHM],
            "subject_types_supported": ["public"],
            "response_types_supported": [],
        }
