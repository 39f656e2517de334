"""What a command puts out while it runs: each piece once, and in the end what its answer has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble.sandbox.workbench.bash_session import BashSession, Command
from agentdouble.sandbox.workbench.output import Output

Event = dict[str, Any]


class Live:
    """Tells of one command; ``limit`` (characters) is that of its answer, 0 for none.

    An answer that is too long has its middle left out, and nobody knows before the end what
    that will be: only its first half is told at once.
    """

    def __init__(self, session: BashSession, command: Command, limit: int) -> None:
        self._session = session
        self._command = command
        self._limit = limit
        self._streams: tuple[_Stream, ...] = ()

    async def events(self, over: asyncio.Future[None]) -> AsyncGenerator[Event, None]:
        """Yield that the command begins and what it puts out, until ``over`` is done."""
        try:
            await _first(over, self._command.begun.wait())
            if self._command.begun.is_set():
                self._streams = self._begun()
                yield {"event": "started", "command_id": self._command.id}
            while not over.done():
                said = [
                    event
                    for one, end in zip(self._streams, self._command.ends, strict=False)
                    for event in one.said(end)
                ]
                for event in said:
                    yield event
                if not said:
                    await _first(over, *(one.output.changed() for one in self._open()))
        finally:
            over.cancel()

    def rest(self, answer: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what of the answer was not told; all of it where a flood took what was."""
        told = {one.name: one.told for one in self._streams}
        if any(one.told and one.lost for one in self._streams):
            yield {"event": "cleared"}
            told = {}
        for name in ("stdout", "stderr"):
            if text := answer[name][told.get(name, 0) :]:
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
    """A stream of a command: what it puts out from ``begin`` on was told up to ``at``.

    That were ``told`` characters, and ``left`` more may be.
    """

    name: str
    output: Output
    begin: int
    at: int
    left: int | None
    told: int = 0

    @property
    def lost(self) -> bool:
        """Whether the answer begins with a mark, for what was put out first is kept no more."""
        return self.output.start > self.begin

    def said(self, end: int | None) -> Iterator[Event]:
        """Yield what was put out since the last time, and is certain to be in the answer.

        At its ``end``, None while it runs, the next command begins, and may be quicker than we.
        """
        if self.left == 0 or self.lost:
            return
        text, self.at = self.output.read(self.at, end)
        text = text[: self.left]
        self.told += len(text)
        if self.left is not None:
            self.left -= len(text)
        if text:
            yield _output(self.name, text)


def _output(name: str, text: str) -> Event:
    return {"event": "output", "name": name, "text": text}


async def _first(over: asyncio.Future[None], *changes: Coroutine[Any, Any, Any]) -> None:
    """Return when it is over, or something has changed."""
    waiting = [asyncio.ensure_future(one) for one in changes]
    try:
        await asyncio.wait({over, *waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
