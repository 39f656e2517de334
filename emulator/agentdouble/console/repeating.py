"""A request of the journal, sent to the double once more."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.types import Message

from agentdouble.console.double import Double
from agentdouble.errors import AgentDoubleError
from agentdouble.journal import Entry, current_entry
from agentdouble.redaction import REDACTED
from agentdouble.signing import Authorization, Scope, sign

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
    """A request that the journal does not have completely, or not at all."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


async def repeat(double: Double, request: Request) -> dict[str, Any]:
    """Send the entry that a request names once more; raise CannotRepeatError."""
    entry = double.journal.find(request.path_params["id"])
    if entry is None:
        raise CannotRepeatError("The journal does not have this request any more.", 404)
    body = _body(entry)
    parts = urlsplit(entry.url)
    changed = {
        "method": entry.method,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": _headers(double, entry, body),
    }
    await request.body()  # what follows it is the end of the connection
    answer = _Answer(request, body)
    scope = double.without_connection(request.scope)
    with contextlib.suppress(ConnectionResetError):  # a fault, as its entry says
        await double.app({**scope, **changed}, answer.receive, answer.send)
    return {"id": answer.id, "status": answer.status}


class _Answer:
    """The request's body, and of the answer what the page is told; the journal has the rest."""

    def __init__(self, request: Request, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self.id: int | None = None
        self.status: int | None = None

    async def receive(self) -> Message:
        if self._body is None:
            return await self._request.receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        entry = current_entry.get()
        self.id = self.id if entry is None else entry.id
        self.status = message.get("status", self.status)


def _body(entry: Entry) -> bytes:
    if REDACTED in entry.url:
        raise CannotRepeatError(
            "The journal hides a secret in this request's address: send it anew."
        )
    body = b"" if entry.request_start is None else entry.request_start.whole()
    if body is None:
        raise CannotRepeatError("The journal keeps only the start of this request's body.")
    return body


def _signed_by_us(double: Double, entry: Entry, authorization: str) -> Scope:
    """Return what the request was signed for; refuse to sign what the double did not believe.

    Else a click would lend the user's key to whoever sent a request with a wrong signature.
    """
    if entry.status in _NOT_BELIEVED:
        raise CannotRepeatError(
            "The double refused this request's signature, so none is made anew."
        )
    parsed = Authorization.parse(authorization)
    if parsed.access_key != double.credentials.access_key:
        raise CannotRepeatError(f"This request was signed by another key, {parsed.access_key}.")
    return parsed.scope


def _headers(double: Double, entry: Entry, body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers, signed anew if they were signed: a signature is valid for minutes."""
    headers = list(entry.request_head)
    given = {name: value.decode("latin-1") for name, value in headers}
    if b"x-date" not in given or b"authorization" not in given:
        return headers
    scope = _signed_by_us(double, entry, given[b"authorization"])
    signed = sign(
        entry.method,
        entry.url,
        body,
        credentials=double.credentials,
        region=scope.region,
        service=scope.service,
        when=dt.datetime.now(dt.timezone.utc),
        content_type=given.get(b"content-type", "application/json"),
    )
    anew = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
    return [one for one in headers if one[0] not in _SIGNING] + anew
