"""The checks of Host, Origin, body size, API key and token, before anything else reads a request.

The double runs code, so a web page must not reach it. A page's request has a foreign Origin, or a
Sec-Fetch-Site that says so. A page that rebinds its own name to 127.0.0.1 sends a foreign Host. The
double's own routes need its token, which code of sessions and runtimes does not have.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble.core import log_filters
from agentdouble.core.environment import LOOPBACK_NAMES

OWN = "/_emulator"  # the prefix of the double's own routes
HEALTH = f"{OWN}/health"
IDENTITY = f"{OWN}/identity"  # the issuer of the tokens for hosted applications
IDENTITY_DISCOVERY = f"{IDENTITY}/.well-known/openid-configuration"
IDENTITY_KEYS = f"{IDENTITY}/.well-known/jwks.json"
PUBLIC = frozenset((HEALTH, IDENTITY_DISCOVERY, IDENTITY_KEYS))  # all others need the token
_OWN_KEY = (
    "{prefix} requires its own key: send 'Authorization: Bearer <key>'. 'agentdouble env --for "
    "model' or 'agentdouble env --for jupyter' shows it."
)
_HOST = re.compile(r"(?:\[[0-9A-Za-z:.%]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::\d{0,5})?", re.ASCII)

Presented = Callable[[HTTPConnection], Iterable[str]]
SignsItself = Callable[[HTTPConnection], bool]


@dataclass(frozen=True)
class Refusal:
    """The reason why a request is refused; ``kind`` is a short name for programs."""

    status: int
    kind: str
    message: str


Render = Callable[[HTTPConnection, Refusal], Response]


def render_json(_connection: HTTPConnection, refusal: Refusal) -> Response:
    """Return a refusal in the format of the simple application's errors."""
    body = {"error": {"message": refusal.message, "type": refusal.kind}}
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
    return JSONResponse(body, refusal.status, headers)


def bearer(connection: HTTPConnection) -> str:
    """Return the bearer token of a request, or an empty string."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def bearer_or_header(connection: HTTPConnection) -> tuple[str, ...]:
    """Return the bearer token of a request and its ``X-API-Key``."""
    return bearer(connection), connection.headers.get("x-api-key", "")


@dataclass(frozen=True)
class Policy:
    """Who may call, and how large a request may be.

    ``hosts`` are the names that a Host header may have in addition to loopback names; None allows
    any. ``any_address`` allows every IP address as Host, because a page cannot rebind an address.
    ``body_limit`` is in bytes. ``body_limits`` are the limits of other paths and of the paths below
    them. ``origins`` are the web pages of other origins that may call; "*" allows all.
    ``presented`` returns what a request has in each place where its surface reads a key. ``signed``
    returns whether a request proves itself by a signature and needs no API key. ``token`` is the
    secret of the double's own routes, which accept the API key as well. ``keys`` maps prefixes to
    keys; paths below a prefix require one of its keys or the API key.
    """

    hosts: frozenset[str] | None = frozenset()
    any_address: bool = False
    origins: frozenset[str] = frozenset()
    body_limit: int = 32 * 1024 * 1024
    body_limits: Mapping[str, int] = field(default_factory=dict)
    api_key: str | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    presented: Presented = bearer_or_header
    signed: SignsItself = lambda _connection: False
    render: Render = render_json

    def limit_of(self, connection: HTTPConnection) -> int:
        """Return the largest allowed size of a request's body, in bytes."""
        path: str = connection.scope["path"]
        for prefix, limit in self.body_limits.items():
            if path == prefix or path.startswith(prefix + "/"):
                return limit
        return self.body_limit


class AllowedPagesMiddleware(CORSMiddleware):
    """Starlette's CORS middleware, which gives no header to a page that the policy refuses.

    It runs before the guard, because a preflight request has no key, and an allowed page must be
    able to read why a request is refused.
    """

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        super().__init__(
            app,
            allow_origins=sorted(policy.origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id"],
        )
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = scope["type"] == "http"
        refusal = _page_refusal(Headers(scope=scope), self._policy) if http else None
        if refusal is None:
            await super().__call__(scope, receive, send)
        else:
            await self._policy.render(HTTPConnection(scope), refusal)(scope, receive, send)


class GuardMiddleware:
    """A middleware that passes on the requests that the policy allows."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        limit = self._policy.limit_of(connection)
        refusal = self._refusal(connection, limit)
        meter = _Meter(receive, send, limit)
        if refusal is None:
            with log_filters.serving():
                try:
                    await self._app(scope, meter.receive, meter.send)
                except _BodyTooLargeError:
                    if meter.response_started:
                        raise
                except ClientDisconnect:  # the client no longer waits, and nothing has failed
                    return
            if meter.exceeded and not meter.response_started:
                refusal = _body_too_large(limit)
        if refusal is not None:
            await self._policy.render(connection, refusal)(scope, receive, send)

    def _refusal(self, connection: HTTPConnection, limit: int) -> Refusal | None:
        policy, headers = self._policy, connection.headers
        host = headers.get("host", "")
        refusal = _page_refusal(headers, policy)
        if refusal is not None:
            return refusal
        malformed = _host_error(connection)
        if malformed is not None:
            return Refusal(400, "BadHost", malformed)
        if not _host_allowed(host, policy):
            return Refusal(
                403,
                "ForbiddenHost",
                f"The Host {host!r} is not one of this server's names. "
                "Allow it with the setting allow_hosts.",
            )
        unauthorized = self._unauthorized(connection)
        if unauthorized is not None:
            return Refusal(401, "Unauthorized", unauthorized)
        return _body_too_large(limit) if _announced_length(headers) > limit else None

    def _unauthorized(self, connection: HTTPConnection) -> str | None:
        """Return why the key or token of a request is refused, or None."""
        policy, path, key = self._policy, connection.scope["path"], self._policy.api_key
        presented = tuple(policy.presented(connection))
        if path in PUBLIC or (key is not None and _has_key(presented, key)):
            return None
        if path == OWN or path.startswith(f"{OWN}/"):
            if _has_key(presented, policy.token):
                return None
            return (
                f"{OWN} requires the double's token: send 'Authorization: Bearer <token>'. "
                "agentdouble env shows it as AGENTDOUBLE_TOKEN."
            )
        for prefix, own in policy.keys.items():
            if path.startswith(prefix):
                if any(_has_key(presented, own_key) for own_key in own):
                    return None
                return _OWN_KEY.format(prefix=prefix)
        if key is None or policy.signed(connection):
            return None
        return "This server requires its API key: send 'Authorization: Bearer <key>'."


class _BodyTooLargeError(HTTPException):
    """The body grew past the limit while it was read.

    It is an HTTPException, so that the application inside does not treat it as its own failure.
    """

    def __init__(self) -> None:
        super().__init__(413)


class _Meter:
    """A wrapper of a request that counts its body while it is read.

    If the body is too large, the answer of the application inside is dropped, because the guard
    answers.
    """

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._left = limit
        self.exceeded = False
        self.response_started = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.exceeded = True
            raise _BodyTooLargeError
        return message

    async def send(self, message: Message) -> None:
        if self.exceeded and not self.response_started:
            return
        self.response_started = True
        await self._send(message)


def _body_too_large(limit: int) -> Refusal:
    return Refusal(413, "BodyTooLarge", f"The request body is larger than {limit} bytes.")


def _announced_length(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _host_error(connection: HTTPConnection) -> str | None:
    """Return what is wrong with the form of the Host header (RFC 9112, 3.2), or None."""
    hosts = connection.headers.getlist("host")
    if len(hosts) > 1:
        return f"The request names {len(hosts)} hosts: {', '.join(map(repr, hosts[:3]))}."
    if not hosts and connection.scope.get("http_version") == "1.1":
        return "The request has no Host header, which HTTP/1.1 requires."
    if hosts and not _HOST.fullmatch(hosts[0]):
        return f"The Host {hosts[0][:200]!r} is not a valid host name with an optional port."
    return None


def _host_allowed(host: str, policy: Policy) -> bool:
    if policy.hosts is None:
        return True
    name = host_name(host)
    if name in LOOPBACK_NAMES or name in policy.hosts:
        return True
    return policy.any_address and _is_address(name)


def host_name(host: str) -> str:
    """Return the name in a Host header, lower-case, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _page_refusal(headers: Headers, policy: Policy) -> Refusal | None:
    """Return why a request is refused because of the web page that sends it, or None."""
    page = _foreign_page(headers, policy)
    if page is None:
        return None
    return Refusal(
        403,
        "ForbiddenOrigin",
        f"Requests from the web page {page} are refused. "
        "Name the page's origin in the setting allow_origins to let it call.",
    )


def _foreign_page(headers: Headers, policy: Policy) -> str | None:
    """Return the web page that sends a request without permission, or None."""
    if "*" in policy.origins:
        return None
    origin = headers.get("origin")
    if origin is not None:
        allowed = is_same_origin(origin, headers.get("host", "")) or origin in policy.origins
        return None if allowed else repr(origin)
    # a page of another site sends no Origin with some requests; a link to the double is harmless
    foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return "another site" if foreign and headers.get("sec-fetch-mode") != "navigate" else None


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an origin has the host and port of a Host header.

    All loopback names are one host: the double answers at each of them.
    """
    _, separator, authority = origin.partition("://")
    return bool(separator) and _host_and_port(authority) == _host_and_port(host)


def _host_and_port(authority: str) -> tuple[str, str]:
    name = host_name(authority)
    port = authority.rpartition("]")[2].partition(":")[2]
    return "localhost" if name in LOOPBACK_NAMES else name, port


def _has_key(presented: Iterable[str], key: str) -> bool:
    """Return whether one of the presented texts equals the key; an empty text never does."""
    return any(text and hmac.compare_digest(text.encode(), key.encode()) for text in presented)


def names(hosts: Iterable[str]) -> frozenset[str]:
    """Return host names in the form that ``Policy.hosts`` needs."""
    return frozenset(host_name(host) for host in hosts)
