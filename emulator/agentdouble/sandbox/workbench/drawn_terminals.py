"""``/terminals``: terminals whose screen is drawn here, for the double only.

A page shows the rows that it is sent and needs no emulator of a terminal. The drawing is done in
the session's own process, so that a flood of output takes the session's time and not the double's.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from pydantic import Field
from starlette.routing import Route

from agentdouble.sandbox.workbench.paths import HOME, TERMINALS, TYPED, Paths
from agentdouble.sandbox.workbench.terminal import Terminal
from agentdouble.sandbox.workbench.wire import (
    Answer,
    EventsThenAnswer,
    FailedError,
    RequestBody,
    post,
    streamed,
)

if TYPE_CHECKING:
    from agentdouble.sandbox.workbench.screen import Screen

MOST = 8
_FRAME_S = 0.03
_PIECE = 4096  # characters; pyte draws some 300,000 a second
_FAR_BEHIND = 128 * 1024  # bytes; of a flood only the end is drawn
_KEPT = 16 * 1024


class Size(RequestBody):
    """The size of a terminal."""

    columns: int = Field(ge=1, le=1000)
    rows: int = Field(ge=1, le=1000)


class Typed(RequestBody):
    """A text to type at a terminal, or a new size for it."""

    terminal: str
    text: str = ""
    size: Size | None = None


class DrawnTerminals:
    """The drawn terminals of a sandbox; ``memory_limit`` (bytes) is as of its other terminals."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._paths = paths
        self._memory_limit = memory_limit
        self._open: dict[str, _DrawnTerminal] = {}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [streamed(TERMINALS, Size, self.open), post(TYPED, Typed, self.type)]

    async def open(self, size: Size) -> EventsThenAnswer:
        """Open a terminal and send the changes of its screen; it ends when its client leaves."""
        return self._events(size)

    async def type(self, body: Typed) -> Answer:
        """Type a text at a terminal; resize it."""
        found = self._open.get(body.terminal)
        if found is None:
            raise FailedError("This terminal has ended.")
        if body.size is not None:
            found.resize(body.size)
        await found.terminal.type(body.text)
        return Answer(None)

    async def _events(self, size: Size) -> AsyncGenerator[dict[str, Any] | Answer, None]:
        from agentdouble.sandbox.workbench.screen import Screen

        if len(self._open) >= MOST:
            yield Answer(None, f"{MOST} terminals are open; no more are allowed.", success=False)
            return
        terminal = Terminal(uuid.uuid4().hex)
        try:
            await terminal.start(self._paths.real(HOME), self._memory_limit)
        except OSError as error:
            yield Answer(None, f"No terminal: {error}.", success=False)
            return
        drawn = self._open[terminal.id] = _DrawnTerminal(terminal, Screen(size.columns, size.rows))
        drawn.resize(size)
        try:
            yield {"event": "opened", "terminal": terminal.id}
            async for event in drawn.events():
                yield event
            yield Answer(None, "Its shell has ended.")
        finally:
            del self._open[terminal.id]
            await terminal.close()


class _DrawnTerminal:
    def __init__(self, terminal: Terminal, screen: Screen) -> None:
        self.terminal = terminal
        self._screen = screen
        self._size: Size | None = None
        self._offset = 0

    def resize(self, size: Size) -> None:
        """Resize the terminal; its screen follows with the next frame."""
        self._size = size
        self.terminal.resize(size.columns, size.rows)
        self.terminal.output.wake()

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the changes of the screen, some 30 times a second at most, until bash ends."""
        terminal = self.terminal
        while True:
            closed, end = terminal.closed, terminal.output.end
            if self._size is not None:
                self._screen.resize(self._size.rows, self._size.columns)
                self._size = None
            text = self._read(closed)
            for start in range(0, len(text), _PIECE):
                self._screen.feed(text[start : start + _PIECE])
                await asyncio.sleep(0)  # the session's commands and files are served meanwhile
            await self._answer()
            if changes := self._screen.changes():
                yield changes
                await asyncio.sleep(_FRAME_S)
            elif closed:
                return
            elif end == terminal.output.end and self._size is None and not terminal.closed:
                await terminal.output.changed()  # the rest of a character, too

    def _read(self, closed: bool) -> str:
        output = self.terminal.output
        if output.end - self._offset > _FAR_BEHIND:
            self._offset = output.end - _KEPT
        text, self._offset = output.read(self._offset, output.end if closed else None)
        return text

    async def _answer(self) -> None:
        """Tell a program what it has asked the terminal."""
        asked, self._screen.typed = self._screen.typed, []
        await self.terminal.type("".join(asked))
