"""How a runtime authenticates its callers, and the answers to callers that it does not admit (RFC 6750)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import JSONResponse, Response

from agentdouble.errors import AccessError
from agentdouble.runtimes.authentication.identity import segments_of
from agentdouble.server.sockets import is_loopback

AUTHORIZATION = "Authorization"
_TAKEN = frozenset(
    (
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "upgrade"),
        *("user-id", "session-id", "mcp-session-id", "origin"),
    )
)
_INVALID_REQUEST = -32600  # JSON-RPC


def is_issuers_url(url: str) -> bool:
    """Return whether ``url`` is https, or http to this machine."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for what is not a port)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )


class ApiKey(BaseModel):
    """A key, which is printable ASCII without spaces, and the name of the caller that presents it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "default"
    secret: Annotated[str, Field(pattern="^[!-~]{1,4096}$", repr=False)]


class Authorizer(BaseModel):
    """The ``authorizer`` of a runtime: its keys, or the issuer whose tokens it accepts.

    One of ``keys`` is sent in the header or query parameter ``name``; in the header Authorization
    as ``Bearer <key>``, in any other as the bare key. A token is of the issuer whose OpenID Connect
    discovery document is at ``discovery_url``, for one of ``allowed_clients`` and one ``audience``;
    if one is empty, any value is accepted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[ApiKey, ...] = ()
    location: Literal["Header", "Query"] = "Header"
    name: str = Field(AUTHORIZATION, pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")
    discovery_url: str | None = None
    allowed_clients: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()

    @field_validator("keys", mode="before")
    @classmethod
    def _named(cls, keys: Any) -> Any:
        """Give keys without a name one: default, key-2, key-3."""
        if not isinstance(keys, (list, tuple)):
            return keys
        return [
            {"name": f"key-{number}" if number > 1 else "default", "secret": key}
            if isinstance(key, str)
            else key
            for number, key in enumerate(keys, 1)
        ]

    @field_validator("audience", mode="before")
    @classmethod
    def _several(cls, audience: Any) -> Any:
        return (audience,) if isinstance(audience, str) else audience

    @model_validator(mode="after")
    def _sound(self) -> Authorizer:
        if bool(self.keys) == (self.discovery_url is not None):
            raise _wrong("it has either keys or a discovery_url")
        if self.keys and (self.allowed_clients or self.audience):
            raise _wrong("allowed_clients and audience belong to a discovery_url")
        if self.name.lower().replace("_", "-") in _TAKEN:
            raise _wrong(f"the API key cannot be in {self.name!r}, which has its own use")
        if self.discovery_url is not None and not is_issuers_url(self.discovery_url):
            raise _wrong("its discovery_url is neither an https address nor http to this machine")
        return self

    @property
    def bearer(self) -> bool:
        """Whether the credential is sent as ``Authorization: Bearer``."""
        return self.location == "Header" and self.name.lower() == AUTHORIZATION.lower()

    def wanted(self) -> str:
        """Return how a caller sends its credential."""
        if self.bearer:
            return f"'Authorization: Bearer <{'key' if self.keys else 'token'}>'"
        if self.location == "Header":
            return f"'{self.name}: <key>'"
        return f"the parameter {self.name}=<key> in the query"

    def refusal(
        self,
        runtime: str,
        kind: str,
        message: str,
        *,
        status: int = 401,
        error: str = "",
        reason: str = "",
    ) -> AccessError:
        """Return the refusal of a request; its challenge has the ``error`` and its ``reason``."""
        challenge = f'{"Bearer" if self.bearer else "ApiKey"} realm="{_quotable(runtime)}"'
        if error:
            challenge += f', error="{error}", error_description="{_quotable(reason)}"'
        return AccessError(runtime, message, status=status, kind=kind, challenge=challenge)


def _wrong(reason: str) -> PydanticCustomError:
    return PydanticCustomError("runtime", "{reason}", {"reason": reason})


def _quotable(text: str) -> str:
    return re.sub(r"[^ !#-\[\]-~]", "?", text)


def render(error: AccessError, path: str) -> Response:
    """Return the answer to a refused request, in the format of the interface that ``path`` belongs to."""
    headers = None if error.challenge is None else {"WWW-Authenticate": error.challenge}
    first, message = [*segments_of(path), ""][0].lower(), str(error)
    body: dict[str, Any] = {"error": {"message": message, "type": error.kind}}
    if first == "mcp":
        failure = {"code": _INVALID_REQUEST, "message": message}
        body = {"jsonrpc": "2.0", "id": None, "error": failure}
    elif first in ("apps", "run", "run_sse", "run_live"):
        body = {"detail": message}
    return JSONResponse(body, error.status, headers)
