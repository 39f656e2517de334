"""A request of the journal, sent to the double once more."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.types import Message

from agentdouble import resending
from agentdouble.console.double import Double
from agentdouble.console.forwarding import Watched, with_body


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
    status: int | None = None

    async def told(message: Message) -> None:  # the page asks the journal for the rest
        nonlocal status
        status = message.get("status", status)

    watched = Watched(with_body(body, request.receive), told)
    scope = double.without_connection(request.scope)
    with contextlib.suppress(ConnectionResetError):  # a fault, as its entry says
        await double.app({**scope, **changed}, watched.receive, watched.send)
    return {"id": watched.id, "status": status}
