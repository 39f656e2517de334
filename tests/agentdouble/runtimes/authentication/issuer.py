"""A small OpenID Connect issuer at a real socket, and the tokens that it signs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from tests.ports import handled

Answer = Callable[[BaseHTTPRequestHandler], None]


class Issuer:
    """Serve discovery and keys until closed; ``answers`` overrides the answer of a path.

    Below ``/<name>/``, it is another issuer with the same name and keys.
    """

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.keys: list[dict[str, Any]] = [self.public("one")]
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self._serving = contextlib.ExitStack()
        self.url = self._serving.enter_context(handled(self._handler()))
        self.discovery_url = f"{self.url}/.well-known/openid-configuration"

    def close(self) -> None:
        self._serving.close()

    def public(self, kid: str, **more: Any) -> dict[str, Any]:
        """Return the public half of the key, as in a key set."""
        jwk: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**jwk, "kid": kid, "use": "sig", **more}

    def claims(self, subject: str, **changed: Any) -> dict[str, Any]:
        """Return the claims of a valid token; None removes one."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": subject,
            "client_id": "console",
            "aud": "api",
            "iat": now,
            "exp": now + 600,
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, subject: str = "alice", kid: str | None = "one", **changed: Any) -> str:
        """Return a signed token; see ``claims``."""
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(self.claims(subject, **changed), self.key, "ES256", headers)

    def _document(self, path: str) -> dict[str, Any]:
        if path.endswith("/keys"):
            return {"keys": self.keys}
        below = path.partition("/.well-known")[0]
        return {"issuer": self.url, "jwks_uri": f"{self.url}{below}/keys"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append(self.path)
                if self.path in issuer.answers:
                    issuer.answers[self.path](self)
                else:
                    answer(self, json.dumps(issuer._document(self.path)).encode())

        return Handler


def answer(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **more: str) -> None:
    """Answer with a body."""
    handler.send_response(status)
    for name, value in more.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    with contextlib.suppress(OSError):  # whoever asked has seen enough
        handler.wfile.write(body)
