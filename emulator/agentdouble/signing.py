"""Signing of control-plane requests (HMAC-SHA256): sign and verify in one place.

A verifier must not assume which headers are signed: real clients differ (with or without a
session token, with or without their own context header). It therefore takes the list from
the request's own SignedHeaders and demands only ``host`` and ``x-date`` (U-SIGNING).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit

from agentdouble.errors import SignatureError

ALGORITHM = "HMAC-SHA256"
DATE_FORMAT = "%Y%m%dT%H%M%SZ"
DEFAULT_SKEW = dt.timedelta(minutes=15)

_AUTHORIZATION = re.compile(
    rf"^{ALGORITHM}\s+Credential=(?P<access_key>[^/,\s]+)/(?P<date>\d{{8}})/(?P<region>[^/,\s]+)"
    r"/(?P<service>[^/,\s]+)/request\s*,\s*SignedHeaders=(?P<signed>[^,\s]+)\s*,\s*"
    r"Signature=(?P<signature>[0-9a-fA-F]+)$"
)


@dataclass(frozen=True)
class Credentials:
    """An access key, its secret, and a session token where there is one."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scope:
    """What a signature is valid for: a day (YYYYMMDD), a region and a service."""

    date: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/request"


@dataclass(frozen=True)
class Request:
    """The parts of an HTTP request that a signature covers; header names are lower-case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Authorization:
    """A parsed Authorization header."""

    access_key: str
    scope: Scope
    signed_headers: tuple[str, ...]
    signature: str

    @classmethod
    def parse(cls, header: str) -> Authorization:
        """Read an Authorization header; raise SignatureError if it is not of this scheme."""
        match = _AUTHORIZATION.match(header.strip())
        if match is None:
            raise SignatureError(
                "MissingSignature",
                "The request is missing signature. The Authorization header must read "
                f"'{ALGORITHM} Credential=<key>/<date>/<region>/<service>/request, "
                "SignedHeaders=<a;b>, Signature=<hex>'.",
            )
        return cls(
            access_key=match["access_key"],
            scope=Scope(match["date"], match["region"], match["service"]),
            signed_headers=tuple(match["signed"].lower().split(";")),
            signature=match["signature"].lower(),
        )

    def __str__(self) -> str:
        return (
            f"{ALGORITHM} Credential={self.access_key}/{self.scope}, "
            f"SignedHeaders={';'.join(self.signed_headers)}, Signature={self.signature}"
        )


def sign(
    method: str,
    url: str,
    body: bytes,
    *,
    credentials: Credentials,
    region: str,
    service: str,
    when: dt.datetime,
    content_type: str = "application/json",
) -> dict[str, str]:
    """Return the headers that sign a request, Host and Content-Type among them.

    ``when`` is the time of signing, in UTC. A session token is sent and signed.
    """
    parts = urlsplit(url)
    x_date = when.strftime(DATE_FORMAT)
    headers = {
        "Content-Type": content_type,
        "Host": parts.netloc,
        "X-Content-Sha256": hashlib.sha256(body).hexdigest(),
        "X-Date": x_date,
    }
    if credentials.session_token is not None:
        headers["X-Security-Token"] = credentials.session_token
    request = Request(
        method,
        parts.path or "/",
        tuple(parse_qsl(parts.query, keep_blank_values=True)),
        {name.lower(): value for name, value in headers.items()},
        body,
    )
    scope = Scope(x_date[:8], region, service)
    signed = tuple(sorted(request.headers))
    signature = _signature(request, signed, scope, credentials.secret_key)
    authorization = Authorization(credentials.access_key, scope, signed, signature)
    return {**headers, "Authorization": str(authorization)}


def verify(
    request: Request,
    *,
    secret_of: Callable[[str], str | None],
    wall: dt.datetime,
    skew: dt.timedelta = DEFAULT_SKEW,
) -> Authorization:
    """Check a request's signature and return who signed it, for which scope.

    ``secret_of`` maps an access key to its secret, or to None when it is unknown; ``wall``
    is the wall clock (U-SIGNING-SKEW). Raises SignatureError with the platform's code.
    """
    header = request.headers.get("authorization")
    if not header:
        raise SignatureError(
            "MissingAuthenticationToken", "Request is missing Authentication Token."
        )
    authorization = Authorization.parse(header)
    _require_signed(authorization, request)
    _check_age(request.headers["x-date"], authorization.scope, wall, skew)
    secret = secret_of(authorization.access_key)
    if secret is None:
        raise SignatureError(
            "InvalidAccessKey",
            f"The accesskey [{authorization.access_key}] included in the request is invalid.",
        )
    _check_signature(request, authorization, secret)
    return authorization


def _require_signed(authorization: Authorization, request: Request) -> None:
    for name in ("host", "x-date"):
        if name not in authorization.signed_headers:
            raise SignatureError(
                "SignatureDoesNotMatch", f"SignedHeaders must name {name}, and does not."
            )
    for name in authorization.signed_headers:
        if name not in request.headers:
            raise SignatureError(
                "MissingRequestInfo",
                f"The request is missing {name} information: SignedHeaders names that header.",
            )


def _check_age(x_date: str, scope: Scope, wall: dt.datetime, skew: dt.timedelta) -> None:
    try:
        signed_at = dt.datetime.strptime(x_date, DATE_FORMAT).replace(tzinfo=dt.timezone.utc)
    except ValueError:
        raise SignatureError(
            "InvalidTimestamp",
            f"The signature of the request is expired: X-Date {x_date!r} is not of the form "
            "YYYYMMDDTHHMMSSZ.",
        ) from None
    if x_date[:8] != scope.date:
        raise SignatureError(
            "InvalidTimestamp",
            f"The signature of the request is expired: the credential's date {scope.date} is "
            f"not that of X-Date {x_date}.",
        )
    if abs(wall - signed_at) > skew:
        raise SignatureError(
            "InvalidTimestamp",
            f"The signature of the request is expired: X-Date {x_date} is more than "
            f"{skew.total_seconds():.0f} s away from {wall.strftime(DATE_FORMAT)}.",
        )


def _check_signature(request: Request, authorization: Authorization, secret: str) -> None:
    announced = request.headers.get("x-content-sha256")
    actual = hashlib.sha256(request.body).hexdigest()
    body_matches = announced is None or hmac.compare_digest(
        announced.lower().encode(), actual.encode()
    )
    matches = [
        hmac.compare_digest(
            _signature(candidate, authorization.signed_headers, authorization.scope, secret),
            authorization.signature,
        )
        for candidate in _host_variants(request)
    ]
    if not (body_matches and any(matches)):
        raise SignatureError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. "
            "Check your Secret Access Key and signing method. "
            "Consult the service documentation for details.",
        )


def _host_variants(request: Request) -> Iterable[Request]:
    """Yield the request as it came, and with a default port cut off its host.

    The SDK's signer sends ``host:80`` or ``host:443`` and signs the bare host.
    """
    yield request
    host, _, port = request.headers["host"].rpartition(":")
    if port in ("80", "443"):
        headers = {**request.headers, "host": host}
        yield Request(request.method, request.path, request.query, headers, request.body)


def _signature(request: Request, signed: Iterable[str], scope: Scope, secret: str) -> str:
    to_sign = "\n".join(
        (
            ALGORITHM,
            request.headers["x-date"],
            str(scope),
            hashlib.sha256(_canonical(request, tuple(signed)).encode()).hexdigest(),
        )
    )
    key = secret.encode()
    for part in (scope.date, scope.region, scope.service, "request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def _canonical(request: Request, signed: tuple[str, ...]) -> str:
    pairs = sorted((_quote(name), _quote(value)) for name, value in request.query)
    headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in signed)
    return "\n".join(
        (
            request.method.upper(),
            quote(request.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            headers,
            ";".join(signed),
            hashlib.sha256(request.body).hexdigest(),
        )
    )


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")
