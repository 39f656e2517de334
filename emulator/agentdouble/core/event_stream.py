"""Read ``text/event-stream`` as the HTML standard says: UTF-8, in lines ended by CR, LF or both.

httpx-sse does not fit: it yields an event without data after each comment as soon as one event had
an id, refuses a media type in capitals, and keeps a byte order mark.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

MEDIA_TYPE = "text/event-stream"
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class ServerSentEvent:
    """An event: its data, whose lines are joined by newlines, and its name."""

    data: str
    name: str


def data_of(content: bytes) -> list[str]:
    """Return the data of each complete event in the content of an answer."""
    return [event.data for event in EventDecoder().feed(content, final=True)]


class EventDecoder:
    """Decodes a stream in chunks of any length."""

    def __init__(self) -> None:
        self._utf_8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._after_cr = False  # which already ended a line; a newline now belongs to it
        self._begun: list[str] = []  # pieces of a line
        self._name = ""
        self._data: list[str] = []

    def feed(self, content: bytes, *, final: bool = False) -> Iterator[ServerSentEvent]:
        """Yield the events that end in this chunk."""
        text = self._utf_8.decode(content, final)
        if not text:
            return
        if self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        first, *others = _LINE_END.split(text)
        self._begun.append(first)
        for line in others:
            yield from self._line("".join(self._begun))
            self._begun = [line]

    def _line(self, line: str) -> Iterator[ServerSentEvent]:
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        elif name == "event":
            self._name = value.removeprefix(" ")
        elif not line:
            if self._data:
                yield ServerSentEvent("\n".join(self._data), self._name or "message")
            self._name, self._data = "", []
