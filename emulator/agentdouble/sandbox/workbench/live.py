"""The output of a command while it runs, sent as events that together make the answer's output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.sandbox.workbench.bash_session import BashSession, Command
from agentdouble.sandbox.workbench.output import Output

Event = dict[str, Any]


class LiveCommand:
    """Sends the events of one command; ``limit`` (characters) is its answer's, 0 for no limit.

    If an answer is too long, its middle is left out, and the middle is known only at the end. Only
    the first half of the limit is certain to be in the answer, so only that is sent at once. If a
    flood of output drops its own beginning, a ``cleared`` event revokes the events sent before.
    """

    def __init__(self, session: BashSession, command: Command, limit: int) -> None:
        self._session = session
        self._command = command
        self._limit = limit
        self._streams: tuple[_Stream, ...] = ()

    async def events(self, over: asyncio.Future[None]) -> AsyncGenerator[Event, None]:
        """Yield an event for the command's start, and for its outputs until ``over`` is done."""
        try:
            await _first(over, self._command.begun.wait())
            if self._command.begun.is_set():
                self._streams = self._begun()
                yield {"event": "started", "command_id": self._command.id}
            while not over.done():
                events = [
                    event
                    for one, end in zip(self._streams, self._command.ends, strict=False)
                    for event in one.new_events(end)
                ]
                for event in events:
                    yield event
                if not events:
                    await _first(over, *(one.output.changed() for one in self._open()))
        finally:
            over.cancel()

    def rest(self, answer: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the rest of the answer; all of it if a flood has dropped the beginning."""
        sent = {one.name: one.sent for one in self._streams}
        if any(one.sent and one.lost for one in self._streams):
            yield {"event": "cleared"}
            sent = {}
        for name in ("stdout", "stderr"):
            if text := answer[name][sent.get(name, 0) :]:
                yield _output(name, text)

    def _begun(self) -> tuple[_Stream, ...]:
        outputs = (("stdout", self._session.stdout), ("stderr", self._session.stderr))
        left = self._limit // 2 if self._limit else None
        return tuple(
            _Stream(name, output, begin, begin, left)
            for (name, output), begin in zip(outputs, self._command.begins, strict=True)
        )

    def _open(self) -> Iterator[_Stream]:
        return (one for one in self._streams if one.left != 0 and not one.lost)


@dataclass
class _Stream:
    """A stream of a command: its output begins at ``begin`` and has been sent up to ``at``.

    ``sent`` characters have been sent; ``left`` more may be sent, None for no limit.
    """

    name: str
    output: Output
    begin: int
    at: int
    left: int | None
    sent: int = 0

    @property
    def lost(self) -> bool:
        """Whether the beginning is no longer kept; the answer then begins with a note about it."""
        return self.output.start > self.begin

    def new_events(self, end: int | None) -> Iterator[Event]:
        """Yield the new output that is certain to be in the answer.

        ``end`` is None while the command runs. The output of the next command begins at ``end``;
        it may already have arrived.
        """
        if self.left == 0 or self.lost:
            return
        text, self.at = self.output.read(self.at, end)
        text = text[: self.left]
        self.sent += len(text)
        if self.left is not None:
            self.left -= len(text)
        if text:
            yield _output(self.name, text)


def _output(name: str, text: str) -> Event:
    return {"event": "output", "name": name, "text": text}


async def _first(over: asyncio.Future[None], *changes: Coroutine[Any, Any, Any]) -> None:
    """Wait until ``over`` is done, or one of the changes has happened."""
    waiting = [asyncio.ensure_future(one) for one in changes]
    try:
        await asyncio.wait({over, *waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
