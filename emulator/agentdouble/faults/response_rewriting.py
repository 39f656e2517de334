"""Responses that are rewritten, and the ends of events in a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Send

from agentdouble.faults import kinds

_END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_DATA = re.compile(rb"(?:^|[\r\n])data")
_NO_JSON = '{"success": tru'


class EventEnds:
    """A search for the end of the ``count``-th server-sent event in a body that comes in pieces.

    A block without data is not an event: it may be a comment that keeps the connection alive.
    """

    def __init__(self, count: int) -> None:
        self._left = count
        self._block = b""

    def within(self, piece: bytes) -> int | None:
        """Return where the event ends in this piece, or None if it does not."""
        before = len(self._block)
        self._block += piece
        end_of_last = 0
        while (end := _END_OF_EVENT.search(self._block)) is not None:
            event, self._block = self._block[: end.end()], self._block[end.end() :]
            end_of_last += end.end()
            self._left -= bool(_DATA.search(event))
            if self._left == 0:
                return end_of_last - before
        return None


class RewrittenResponse:
    """A wrapper of ``send`` that buffers a complete response and then rewrites its body."""

    def __init__(self, send: Send, rewrite: Callable[[bytes], bytes]) -> None:
        self._send = send
        self._rewrite = rewrite
        self._head: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False) or self._head is None:
            return
        body = self._rewrite(self._body)
        others = [(n, v) for n, v in self._head["headers"] if n.lower() != b"content-length"]
        headers = [*others, (b"content-length", str(len(body)).encode())]
        await self._send({**self._head, "headers": headers})
        await self._send({**message, "body": body})


def wrong_json(body: bytes, fault: kinds.WrongJson) -> bytes | None:
    """Return a response of InvokeTool with wrong inner JSON, or None if it has no inner JSON."""
    try:
        answer = json.loads(body)
        inner = answer["Result"]["Result"]
    except (ValueError, TypeError, KeyError):  # an error envelope
        return None
    answer["Result"]["Result"] = _wrong(inner, fault)
    return None if answer["Result"]["Result"] is None else json.dumps(answer).encode()


def _wrong(inner: str, fault: kinds.WrongJson) -> str | None:
    if not fault.without:
        return _NO_JSON if fault.text is None else fault.text
    document = json.loads(inner)
    removed = [_remove(document, name.split(".")) for name in fault.without]
    return json.dumps(document) if all(removed) else None


def _remove(document: Any, names: list[str]) -> bool:
    *parents, last = names
    for name in parents:
        document = document.get(name) if isinstance(document, dict) else None
    if not isinstance(document, dict) or last not in document:
        return False
    del document[last]
    return True
