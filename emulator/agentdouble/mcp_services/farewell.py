"""What a caller is told when a backend breaks off amid its answer."""

from __future__ import annotations

import json
import re

from agentdouble.mcp_hosting import INTERNAL_ERROR
from agentdouble.upstream import Answer

_EVENT_ID = re.compile(rb"^id:", re.MULTILINE)
_EVENT_END = re.compile(rb"(\r\n\r\n|\n\n|\r\r)\Z")


class Farewell:
    """Sees an answer pass, and knows what can be said should it break off."""

    def __init__(self, answer: Answer, asked: bytes) -> None:
        kind = answer.header(b"content-type") or ""
        self.is_stream = kind.startswith("text/event-stream")
        self._plain = answer.header(b"content-encoding") is None
        self._asked = asked
        self._resumable = False
        self._end = b""

    def see(self, chunk: bytes) -> None:
        """Take note of the next piece of the answer."""
        if self.is_stream:
            self._resumable = self._resumable or _EVENT_ID.search(chunk) is not None
            self._end = (self._end + chunk[-4:])[-4:]

    def words(self, message: str) -> bytes:
        """Return the last event of a stream: an error with that message for the request.

        It is empty where no request waits, where the client can take the stream up again by the
        ids of events, and amid an event.
        """
        id_ = _id(self._asked)
        whole = not self._end or _EVENT_END.search(self._end) is not None
        if not whole or id_ is None or self._resumable or not self._plain:
            return b""
        error = {"code": INTERNAL_ERROR, "message": message}
        data = json.dumps({"jsonrpc": "2.0", "id": id_, "error": error})
        return f"event: message\ndata: {data}\n\n".encode()


def _id(asked: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request; None if it is something else."""
    try:
        message = json.loads(asked)
    except (ValueError, RecursionError):
        return None
    id_ = message.get("id") if isinstance(message, dict) and "method" in message else None
    return id_ if isinstance(id_, (str, int)) else None
