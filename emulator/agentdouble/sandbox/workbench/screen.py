"""The screen of a terminal, drawn by pyte (``pip install 'agentdouble[console]'``)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyte
from pyte.screens import Char, Margins, StaticDefaultDict

Run: TypeAlias = "list[Any]"  # a text, and its style if it has one

_SCROLLED = 1000  # lines that leave the screen between two looks
_PRIVATE = 5  # pyte shifts the numbers of private modes by as many bits
_OTHER_SCREEN = frozenset((47, 1047, 1049))  # modes in which editors and pagers draw
_APPLICATION_KEYS = 1 << _PRIVATE
_BRACKETED_PASTE = 2004 << _PRIVATE
_FOR_KEYBOARDS = re.compile("\x1b\\[[>=<][0-9;]*[A-Za-z]")  # pyte takes them for colours
_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_COLOURS = {
    **{name: str(number) for number, name in enumerate(_NAMES)},
    **{f"bright{name}": str(number + 8) for number, name in enumerate(_NAMES)},
    "bfightmagenta": "13",  # as pyte 0.8.2 spells one of them
}


class Screen(pyte.Screen):
    """A screen that remembers what scrolls off it, and has a second one for editors."""

    def __init__(self, columns: int, rows: int) -> None:
        self.typed: list[str] = []
        self._scrolled: deque[Mapping[int, Char]] = deque(maxlen=_SCROLLED)
        self._first: tuple[Any, Any] | None = None
        self._told: Any = None
        super().__init__(columns, rows)
        self._stream = pyte.Stream(self)

    def feed(self, text: str) -> None:
        """Draw a piece of a terminal's output."""
        # for a sequence that pyte takes other arguments of; the rest of the piece goes with it
        with contextlib.suppress(TypeError, ValueError, IndexError):
            self._stream.feed(_FOR_KEYBOARDS.sub("", text))

    def changes(self) -> dict[str, Any]:
        """Return what has changed since the last call, nothing if that is nothing."""
        cursor = None if self.cursor.hidden else [self.cursor.x, self.cursor.y]
        state = (cursor, _APPLICATION_KEYS in self.mode, _BRACKETED_PASTE in self.mode)
        if not self.dirty and not self._scrolled and state == self._told:
            return {}
        self._told = state
        rows = {
            str(row): _runs(self.buffer[row], self.columns)
            for row in sorted(self.dirty)
            if row < self.lines
        }
        self.dirty.clear()
        scrolled = [_runs(line, self.columns) for line in self._scrolled]
        self._scrolled.clear()
        return {
            "event": "screen",
            "size": [self.columns, self.lines],
            "rows": rows,
            "scrolled": scrolled,
            "cursor": cursor,
            "application_keys": state[1],
            "bracketed_paste": state[2],
        }

    def index(self) -> None:
        """Move the cursor down; keep the line that leaves the screen at its top."""
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and self._first is None:
            self._scrolled.append(self.buffer[0])
        super().index()

    def set_mode(self, *numbers: int, **options: Any) -> None:
        """Set modes; one is the screen of editors."""
        if options.get("private") and _OTHER_SCREEN.intersection(numbers) and self._first is None:
            self.save_cursor()
            self._first = (self.buffer, self.savepoints.pop())
            self.buffer = defaultdict(lambda: StaticDefaultDict(self.default_char))
            self.dirty.update(range(self.lines))
        super().set_mode(*numbers, **options)

    def reset_mode(self, *numbers: int, **options: Any) -> None:
        """Reset modes; without the screen of editors, the first one is back."""
        super().reset_mode(*numbers, **options)
        if options.get("private") and _OTHER_SCREEN.intersection(numbers) and self._first:
            self.buffer, savepoint = self._first
            self._first = None
            self.savepoints.append(savepoint)
            self.restore_cursor()
            self.dirty.update(range(self.lines))

    def select_graphic_rendition(self, *attributes: int, **options: Any) -> None:
        """Set colours; the private form is about keys and not about colours."""
        if not options:
            super().select_graphic_rendition(*attributes)

    def write_process_input(self, data: str) -> None:
        """Note what a program that asked the terminal is told."""
        self.typed.append(data)


def _runs(line: Mapping[int, Char], columns: int) -> list[Run]:
    """Return a line as texts of one style each, without the blanks at its end."""
    chars = [line[column] for column in range(columns)]
    while chars and chars[-1] == _blank():
        chars.pop()
    grouped = itertools.groupby(chars, key=lambda one: one._replace(data=""))
    runs: list[Run] = []
    for style, group in grouped:
        text, shown = "".join(one.data for one in group), _style(style)
        runs.append([text, shown] if shown else [text])
    return runs


@functools.cache
def _blank() -> Char:
    return Char(" ")


def _style(char: Char) -> dict[str, Any]:
    """Return the style of a character: colours are numbers below 16, or six hex digits."""
    colours = {"fg": char.fg, "bg": char.bg}
    found: dict[str, Any] = {
        name: _COLOURS.get(colour, colour)
        for name, colour in colours.items()
        if colour != "default"
    }
    flags = {
        "bold": char.bold,
        "italic": char.italics,
        "underline": char.underscore,
        "strike": char.strikethrough,
        "reverse": char.reverse,
    }
    return found | {name: True for name, is_set in flags.items() if is_set}
