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


Place = Literal["header", "query", "cookie"]


@dataclass(frozen=True)
class SecurityScheme:
    """A credential that a definition declares.

    An API key has the ``name`` of a header, query key or cookie, and its place, ``where``.
    """

    kind: Literal["apiKey", "basic", "bearer", "other"]
    name: str = ""
    where: Place = "header"

    def is_header(self, name: str) -> bool:
        """Return whether it is an API key in the header ``name``, in lower case."""
        return self.kind == "apiKey" and self.where == "header" and self.name.lower() == name


@dataclass(frozen=True)
class ApiKey:
    """An API key, sent as the definition says, or as ``name`` and ``where`` say.

    ``scheme`` names one of the definition's security schemes; without it, each operation gets the
    key as the first scheme that it names, or else as the first of the definition.
    """

    key: str = field(repr=False)
    name: str | None = None
    where: Place = "header"
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
        """Add the credential to a request, in place of what the caller sends by the same name."""
        for name, value in self.headers.items():
            request.headers[name] = value
        if self.cookie:
            cookies = _without(request.headers.get("cookie", ""), self.cookie, "; ")
            request.headers["cookie"] = "; ".join([*cookies, self.cookie])
        if self.query:
            pairs = _without(request.url.query.decode("ascii"), self.query, "&")
            request.url = request.url.copy_with(query="&".join([*pairs, self.query]).encode())


def _without(written: str, pair: str, separator: str) -> list[str]:
    """Return the pairs of a query or of cookies, but for those with the name of ``pair``."""
    name = pair.partition("=")[0]
    return [each for each in written.split(separator) if each and each.partition("=")[0] != name]


def credential(auth: Auth | None, declared: Mapping[str, SecurityScheme]) -> Credential:
    """Return the additions to each request; raise DefinitionError if they are not known.

    ``declared`` are the schemes of the definition, by name.
    """
    if auth is None:
        return Credential()
    if isinstance(auth, Bearer):
        value = _visible(auth.token, "token")
        return Credential({"Authorization": f"Bearer {value}"}, secrets=(value,))
    if isinstance(auth, Basic):
        if ":" in auth.user:
            raise DefinitionError("the user of a Basic credential cannot contain a colon")
        pair = base64.b64encode(f"{auth.user}:{auth.password}".encode()).decode()
        return Credential({"Authorization": f"Basic {pair}"}, secrets=(auth.password, pair))
    return _api_key(auth, _scheme(auth, declared))


def _api_key(auth: ApiKey, scheme: SecurityScheme) -> Credential:
    value = _visible(auth.key, "API key")
    encoded = quote(value, safe="")
    if scheme.where == "header":
        if not is_header_name(scheme.name):
            raise DefinitionError(f"{scheme.name!r} is not a valid header name for an API key")
        return Credential({scheme.name: value}, secrets=(value,))
    if scheme.where == "query":
        name = quote(scheme.name, safe="")
        return Credential(query=f"{name}={encoded}", secrets=(value, encoded))
    return Credential(cookie=f"{cookie_name(scheme.name)}={encoded}", secrets=(value, encoded))


def default_scheme(declared: Mapping[str, SecurityScheme]) -> str | None:
    """Return the name of the first API key that a definition declares."""
    return next((name for name, scheme in declared.items() if scheme.kind == "apiKey"), None)


def _scheme(auth: ApiKey, declared: Mapping[str, SecurityScheme]) -> SecurityScheme:
    if auth.name is not None:
        return SecurityScheme("apiKey", auth.name, auth.where)
    chosen = auth.scheme or default_scheme(declared)
    scheme = declared.get(chosen or "")
    if scheme is not None and scheme.kind == "apiKey":
        return scheme
    names = ", ".join(repr(name) for name in declared if declared[name].kind == "apiKey") or "none"
    key = f"the API key {auth.scheme}" if auth.scheme else "the API key"
    unusable = "".join(
        f"; {name!r} is {scheme.name}"
        for name, scheme in declared.items()
        if scheme.kind == "other" and scheme.name.startswith("an API key")
    )
    raise DefinitionError(
        f"it does not say how {key} is sent (API keys that it declares: "
        f"{names}{unusable}). Give the name of the header, query key or cookie with the key"
    )


def _visible(value: str, noun: str) -> str:
    """Return a value that can be sent in a header; raise DefinitionError for any other."""
    if not value or any(not " " < char <= "~" for char in value):
        raise DefinitionError(f"the {noun} must be printable ASCII without spaces")
    return value


def cookie_name(text: str) -> str:
    """Percent-encode only what a cookie's name cannot have, because no backend decodes it."""
    return quote(text, safe="!#$&'*+^`|")


def is_header_name(text: str) -> bool:
    """Return whether a text can be the name of a header."""
    return _TOKEN.match(text) is not None
