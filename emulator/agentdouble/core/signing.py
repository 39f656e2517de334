"""Signing of control-plane requests (HMAC-SHA256): sign and verify in one place.

A verifier must not assume which headers are signed, because real clients differ: with or without a
session token, with or without their own context header. So it takes the list from the request's
SignedHeaders and requires only ``host`` and ``x-date`` (U-SIGNING). The body is always covered: an
announced hash is checked, and UNSIGNED-PAYLOAD is not accepted.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from agentdouble.core.canonical_request import (
    SignableRequest,
    message,
    mismatch,
    read_query,
    readings,
)
from agentdouble.core.imports import import_now
from agentdouble.errors import SignatureError

import_now("_strptime")  # strptime() needs it, and would import it on the loop at the first request

__all__ = ["Authorization", "Credentials", "Scope", "SignableRequest", "sign", "verify"]

ALGORITHM = "HMAC-SHA256"
DATE_FORMAT = "%Y%m%dT%H%M%SZ"
DEFAULT_SKEW = dt.timedelta(minutes=15)

_AUTHORIZATION = re.compile(
    rf"{ALGORITHM}\s+Credential=(?P<access_key>[^/,\s]+)/(?P<date>\d{{8}})/(?P<region>[^/,\s]+)"
    r"/(?P<service>[^/,\s]+)/request\s*,\s*SignedHeaders=(?P<signed>[^,\s]+)\s*,\s*"
    r"Signature=(?P<signature>[0-9a-f]+)",
    re.ASCII,
)
_X_DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_ALWAYS_ONCE = ("authorization", "x-content-sha256", "x-security-token")


@dataclass(frozen=True)
class Credentials:
    """An access key, its secret, and the session token if there is one."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scope:
    """The day (YYYYMMDD), region and service for which a signature is valid."""

    date: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/request"


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
        match = _AUTHORIZATION.fullmatch(header.strip())
        if match is None:
            raise SignatureError(
                "MissingSignature",
                "The request is missing signature. The Authorization header must read "
                f"'{ALGORITHM} Credential=<key>/<date>/<region>/<service>/request, "
                f"SignedHeaders=<a;b>, Signature=<hex>'.{_flaw(header.strip())}",
            )
        return cls(
            access_key=match["access_key"],
            scope=Scope(match["date"], match["region"], match["service"]),
            signed_headers=tuple(match["signed"].split(";")),
            signature=match["signature"],
        )

    def __str__(self) -> str:
        return (
            f"{ALGORITHM} Credential={self.access_key}/{self.scope}, "
            f"SignedHeaders={';'.join(self.signed_headers)}, Signature={self.signature}"
        )


def _flaw(header: str) -> str:
    """Return a sentence about the first wrong part of an Authorization header, after a space."""
    if not header.startswith(f"{ALGORITHM} "):
        return f" It does not begin with {ALGORITHM}."
    written = (part.strip().partition("=") for part in header.partition(" ")[2].split(","))
    parts = {name: value for name, _, value in written}
    for name in ("Credential", "SignedHeaders", "Signature"):
        if not parts.get(name):
            return f" It has no {name}, or not after a comma."
    key, *scope = parts["Credential"].split("/")
    if len(scope) != 4 or scope[3] != "request" or not all((key, *scope)):
        return " Its Credential is not the key and four more parts, the last of them 'request'."
    if not re.fullmatch(r"[0-9]{8}", scope[0]):
        return " The date in its Credential is not of the form YYYYMMDD."
    if not re.fullmatch("[0-9a-f]+", parts["Signature"]):
        return " Its Signature is not lower-case hex."
    return ""


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
    """Return the headers that sign a request, including Host and Content-Type.

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
    request = SignableRequest(
        method,
        unquote(parts.path) or "/",
        read_query(parts.query.encode()),
        {name.lower(): value for name, value in headers.items()},
        body,
    )
    scope = Scope(x_date[:8], region, service)
    signed = tuple(sorted(request.headers))
    canonical = next(readings(request, signed)).encode()
    signature = _signature(canonical, x_date, scope, credentials.secret_key)
    authorization = Authorization(credentials.access_key, scope, signed, signature)
    return {**headers, "Authorization": str(authorization)}


def verify(
    request: SignableRequest,
    *,
    credentials_of: Callable[[str], Credentials | None],
    wall: dt.datetime,
    skew: dt.timedelta = DEFAULT_SKEW,
) -> Authorization:
    """Check a request's signature and return who signed it, and for which scope.

    ``credentials_of`` returns the credentials of an access key, or None if the key is unknown.
    ``wall`` is the wall clock (U-SIGNING-SKEW). Requests with temporary credentials must send
    their session token, signed or not. Raises SignatureError with the platform's code.
    """
    header = request.headers.get("authorization")
    if not header:
        raise SignatureError(
            "MissingAuthenticationToken", "Request is missing Authentication Token."
        )
    _require_once(request, _ALWAYS_ONCE)
    authorization = Authorization.parse(header)
    _require_signed(authorization, request)
    _check_age(request.headers["x-date"], authorization.scope, wall, skew)
    credentials = credentials_of(authorization.access_key)
    if credentials is None:
        raise SignatureError(
            "InvalidAccessKey",
            f"The accesskey [{authorization.access_key}] included in the request is invalid.",
        )
    _check_signature(request, authorization, credentials.secret_key)
    _check_token(request, credentials)
    return authorization


def _require_once(request: SignableRequest, names: Iterable[str]) -> None:
    for name in names:
        if name in request.repeated:
            raise SignatureError(
                "SignatureDoesNotMatch",
                f"The header {name} stands in the request more than once, so that nobody can "
                "say which one was signed. Send it once.",
            )


def _require_signed(authorization: Authorization, request: SignableRequest) -> None:
    for name in ("host", "x-date"):
        if name not in authorization.signed_headers:
            raise SignatureError(
                "SignatureDoesNotMatch", f"SignedHeaders must name {name}, and does not."
            )
    for name in authorization.signed_headers:
        if name.lower() not in request.headers:
            raise SignatureError(
                "MissingRequestInfo",
                f"The request is missing {name} information: SignedHeaders names that header.",
            )
    _require_once(request, (name.lower() for name in authorization.signed_headers))


def _check_age(x_date: str, scope: Scope, wall: dt.datetime, skew: dt.timedelta) -> None:
    signed_at = _read_date(x_date)
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


def _read_date(x_date: str) -> dt.datetime:
    try:
        if not _X_DATE.fullmatch(x_date):
            raise ValueError
        return dt.datetime.strptime(x_date, DATE_FORMAT).replace(tzinfo=dt.timezone.utc)
    except ValueError:
        raise SignatureError(
            "InvalidTimestamp",
            f"The signature of the request is expired: X-Date {x_date[:40]!r} is not of the "
            "form YYYYMMDDTHHMMSSZ.",
        ) from None


def _check_signature(request: SignableRequest, authorization: Authorization, secret: str) -> None:
    matches = [
        hmac.compare_digest(
            _signature(canonical.encode(), request.headers["x-date"], authorization.scope, secret),
            authorization.signature,
        )
        for canonical in readings(request, authorization.signed_headers)
    ]
    if any(matches) and _body_is_announced(request):
        return
    canonical = next(readings(request, authorization.signed_headers))
    to_sign = _string_to_sign(canonical.encode(), request.headers["x-date"], authorization.scope)
    data = mismatch(request, canonical, to_sign)
    raise SignatureError(
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. "
        "Check your Secret Access Key and signing method. "
        f"Consult the service documentation for details. {message(data)}",
        data,
    )


def _body_is_announced(request: SignableRequest) -> bool:
    """Return whether X-Content-Sha256 is absent or matches the body, even if it is not signed."""
    announced = request.headers.get("x-content-sha256")
    actual = hashlib.sha256(request.body).hexdigest()
    return announced is None or hmac.compare_digest(announced.encode(), actual.encode())


def _check_token(request: SignableRequest, credentials: Credentials) -> None:
    if credentials.session_token is None:
        return
    sent = request.headers.get("x-security-token", "")
    if not hmac.compare_digest(sent.encode(), credentials.session_token.encode()):
        fault = "is not that of these temporary credentials" if sent else "is missing"
        raise SignatureError(
            "InvalidSecurityToken", f"The session token in the header X-Security-Token {fault}."
        )


def _signature(
    canonical: bytes, x_date: str, scope: Scope, secret: str, *, announced: Scope | None = None
) -> str:
    """Return the signature with a key for ``scope``; the string to sign may name another scope."""
    key = secret.encode()
    for part in (scope.date, scope.region, scope.service, "request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    to_sign = _string_to_sign(canonical, x_date, announced or scope)
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def _string_to_sign(canonical: bytes, x_date: str, scope: Scope) -> str:
    hashed = hashlib.sha256(canonical).hexdigest()
    return "\n".join((ALGORITHM, x_date, str(scope), hashed))
