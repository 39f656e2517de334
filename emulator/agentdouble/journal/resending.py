"""The body and the headers with which a request of the journal is sent again."""

from __future__ import annotations

import datetime as dt

from agentdouble.core.redaction import REDACTED
from agentdouble.core.signing import Authorization, Credentials, Scope, sign
from agentdouble.errors import AgentDoubleError
from agentdouble.journal.entries import Entry

_SIGNING = frozenset(
    {
        b"authorization",
        b"content-type",
        b"host",
        b"x-content-sha256",
        b"x-date",
        b"x-security-token",
    }
)
_NOT_BELIEVED = (401, 403)


class CannotRepeatError(AgentDoubleError):
    """The journal lacks a part of the request."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


def dropped_entry_error() -> CannotRepeatError:
    """Return the error for an entry that has been dropped."""
    return CannotRepeatError("The journal no longer has this request.", 404)


def whole_body(entry: Entry) -> bytes:
    """Return the complete body of a request; raise CannotRepeatError."""
    if REDACTED in entry.url:
        raise CannotRepeatError(
            "The journal hides a secret in this request's address: send it yourself."
        )
    if entry.request_start is None and _had_body(entry):
        raise CannotRepeatError("The double answered this request before it had read the body.")
    body = b"" if entry.request_start is None else entry.request_start.full_body()
    if body is None:
        raise CannotRepeatError("The journal keeps only the start of this request's body.")
    return body


def _had_body(entry: Entry) -> bool:
    headers = dict(entry.request_head)
    length = headers.get(b"content-length", b"0")
    return bool(entry.received_bytes) or length != b"0" or b"transfer-encoding" in headers


def headers(entry: Entry, body: bytes, credentials: Credentials) -> list[tuple[bytes, bytes]]:
    """Return the headers, with a new signature if they had one: a signature expires in minutes.

    Raises CannotRepeatError if another key signed them, or if the double did not accept it.
    """
    head = list(entry.request_head)
    headers = {name: value.decode("latin-1") for name, value in head}
    if b"x-date" not in headers or b"authorization" not in headers:
        return head
    scope = _signed_by_us(entry, headers[b"authorization"], credentials)
    signed = sign(
        entry.method,
        entry.url,
        body,
        credentials=credentials,
        region=scope.region,
        service=scope.service,
        when=dt.datetime.now(dt.timezone.utc),
        content_type=headers.get(b"content-type", "application/json"),
    )
    anew = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
    return [header for header in head if header[0] not in _SIGNING] + anew


def _signed_by_us(entry: Entry, authorization: str, credentials: Credentials) -> Scope:
    """Return the scope of the request's signature; refuse if the double did not accept it.

    Otherwise a click would sign the request of someone who sent a wrong signature.
    """
    if entry.status in _NOT_BELIEVED:
        raise CannotRepeatError(
            "The double refused this request's signature, so it is not signed again."
        )
    parsed = Authorization.parse(authorization)
    if parsed.access_key != credentials.access_key:
        raise CannotRepeatError(f"This request was signed by another key, {parsed.access_key}.")
    return parsed.scope
