"""The credentials that a service sends to its backend; the caller of a tool sees none of them.

What callers of a service send is in ``keys`` and ``mcp_hosting.host``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from agentdouble.errors import DefinitionError

if TYPE_CHECKING:
    import httpx


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True)
class ApiKeyScheme:
    """An API key that the definition declares: the ``name`` of a header, query key or cookie."""

    name: str
    where: Literal["header", "query", "cookie"]


@dataclass(frozen=True)
class ApiKey:
    """An API key, sent as the definition says, or as ``name`` and ``where`` say.

    ``scheme`` names one of the definition's security schemes; without it, the first API key of the
    definition is used.
    """

    key: str = field(repr=False)
    name: str | None = None
    where: Literal["header", "query", "cookie"] = "header"
    scheme: str | None = None


@dataclass(frozen=True)
class Bearer:
    """A token, sent as ``Authorization: Bearer TOKEN``."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class Basic:
    """A user and a password, sent as ``Authorization: Basic ...``."""

    user: str
    password: str = field(repr=False)


Auth = ApiKey | Bearer | Basic


@dataclass(frozen=True)
class Credential:
    """The additions to each request; ``secrets`` must not appear in an error."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    cookie: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def put_on(self, request: httpx.Request) -> None:
        """Add the credential to a request, and replace the caller's headers of the same names."""
        for name, value in self.headers.items():
            request.headers[name] = value
        if self.cookie:
            cookie = request.headers.get("cookie")
            request.headers["cookie"] = f"{cookie}; {self.cookie}" if cookie else self.cookie
        if self.query:
            query = b"&".join(part for part in (request.url.query, self.query.encode()) if part)
            request.url = request.url.copy_with(query=query)


def credential(auth: Auth | None, api_keys: Mapping[str, ApiKeyScheme]) -> Credential:
    """Return the additions to each request; raise DefinitionError if they are not known.

    ``api_keys`` are the schemes that the definition declares, by name.
    """
    if auth is None:
        return Credential()
    if isinstance(auth, Bearer):
        value = _visible(auth.token, "token")
        return Credential({"Authorization": f"Bearer {value}"}, secrets=(value,))
    if isinstance(auth, Basic):
        pair = base64.b64encode(f"{auth.user}:{auth.password}".encode()).decode()
        return Credential({"Authorization": f"Basic {pair}"}, secrets=(auth.password, pair))
    return _api_key(auth, _scheme(auth, api_keys))


def _api_key(auth: ApiKey, scheme: ApiKeyScheme) -> Credential:
    value = _visible(auth.key, "API key")
    encoded = quote(value, safe="")
    if scheme.where == "header":
        if not is_header_name(scheme.name):
            raise DefinitionError(f"{scheme.name!r} is not a valid header name for an API key")
        return Credential({scheme.name: value}, secrets=(value,))
    pair = f"{quote(scheme.name, safe='')}={encoded}"
    if scheme.where == "query":
        return Credential(query=pair, secrets=(value, encoded))
    return Credential(cookie=pair, secrets=(value, encoded))


def _scheme(auth: ApiKey, schemes: Mapping[str, ApiKeyScheme]) -> ApiKeyScheme:
    if auth.name is not None:
        return ApiKeyScheme(auth.name, auth.where)
    if auth.scheme is None and schemes:
        return next(iter(schemes.values()))
    if auth.scheme in schemes:
        return schemes[auth.scheme or ""]
    names = ", ".join(repr(name) for name in schemes) or "none"
    raise DefinitionError(
        f"it does not say how the API key {auth.scheme or ''} is sent (API keys that it declares: "
        f"{names}). Give the name of the header, query key or cookie with the key"
    )


def _visible(value: str, noun: str) -> str:
    """Return a value that can be sent in a header; raise DefinitionError for any other."""
    if not value or any(not " " < char <= "~" for char in value):
        raise DefinitionError(f"the {noun} must be printable ASCII without spaces")
    return value


def is_header_name(text: str) -> bool:
    """Return whether a text can be the name of a header."""
    return _TOKEN.match(text) is not None
