"""A request of the journal, sent to the double once more."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.types import Message

from agentdouble import resending
from agentdouble.console.double import Double
from agentdouble.journal import current_entry


async def repeat(double: Double, request: Request) -> dict[str, Any]:
    """Send the entry that a request names once more; raise CannotRepeatError."""
    entry = double.journal.find(request.path_params["id"])
    if entry is None:
        raise resending.gone()
    body = resending.whole_body(entry)
    parts = urlsplit(entry.url)
    changed = {
        "method": entry.method,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": resending.headers(entry, body, double.credentials),
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
        self._look()
        if self._body is None:
            return await self._request.receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        self._look()
        self.status = message.get("status", self.status)

    def _look(self) -> None:
        """Learn the id of the new entry, which is not current any more when an error is sent."""
        entry = current_entry.get()
        if entry is not None:
            self.id = entry.id
