"""The output of a terminal: its last megabytes, addressed by offsets in bytes."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Coroutine
from typing import Any

KEPT = 4 * 1024 * 1024  # bytes; a flood must not fill the workbench's memory


class Output:
    """A stream of bytes of which at least the last ``KEPT`` are kept; offsets count all bytes."""

    def __init__(self) -> None:
        self._start = 0
        self._kept = bytearray()
        self._changed = asyncio.Event()

    @property
    def start(self) -> int:
        """The offset of the first kept byte."""
        return self._start

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self._start + len(self._kept)

    def append(self, data: bytes) -> None:
        """Append bytes and wake all tasks that wait for a change."""
        self._kept += data
        if len(self._kept) > 2 * KEPT:  # not each time, because every cut moves the kept bytes
            cut = len(self._kept) - KEPT
            del self._kept[:cut]
            self._start += cut
        self.wake()

    def wake(self) -> None:
        """Wake all tasks that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def changed(self) -> Coroutine[Any, Any, Any]:
        """Return an awaitable for the next change after this call."""
        return self._changed.wait()

    def read(self, since: int, until: int | None = None) -> tuple[str, int]:
        """Return the text between two offsets, and the offset after it.

        Without ``until``, an incomplete character at the end is left for the next call. A note
        replaces bytes that are no longer kept. Bytes that are not UTF-8 are replaced.
        """
        final = until is not None
        until = self.end if until is None else min(until, self.end)
        since = min(max(since, 0), until)
        first = min(max(since, self._start), until)
        data = bytes(self._kept[max(first - self._start, 0) : max(until - self._start, 0)])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data, final)
        undecoded, _ = decoder.getstate()
        if first > since:
            text = f"[... {first - since} bytes were dropped ...]\n{text}"
        return text, until - len(undecoded)


def shorten(text: str, limit: int) -> str:
    """Shorten a text to ``limit`` characters, with a note in the middle; 0 means no limit."""
    if limit == 0 or len(text) <= limit:
        return text
    head = limit // 2
    tail = limit - head
    omitted = len(text) - limit
    return f"{text[:head]}\n[... {omitted} characters omitted ...]\n{text[-tail:]}"
