"""Output on terminals and in pipes: consoles of rich, tables, and the texts of ``--help``.

In a pipe nothing is drawn and no line ends with spaces. With ``NO_COLOR`` (https://no-color.org)
terminals get neither colours nor bold text nor spinners.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from agentdouble.core.log_filters import printable

if TYPE_CHECKING:
    from rich.console import Console

_GAP = "  "


def is_plain() -> bool:
    """Return whether the user wants no styles: NO_COLOR is set and not empty."""
    return bool(os.environ.get("NO_COLOR"))


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Return rich's console for an output, with its ``options``."""
    from rich.console import Console  # slow: 0.1 s

    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty():
        options["file"] = cast("TextIO", _Trimmed(stream))
    if is_plain():
        options["force_terminal"] = False  # no_color alone leaves bold text and spinners
    return Console(stderr=stderr, **options)


class _Trimmed:
    """A stream that drops the spaces with which tables fill their lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without spaces before its line ends."""
        return self._stream.write(re.sub(r" +(?=\n)", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print complete values, so that they can be copied; in a pipe each row is one line."""
    cells = [[printable(str(row.get(name, ""))) for name in columns] for row in rows]
    if not sys.stdout.isatty():
        _print_lines([list(columns), *cells])
        return
    from rich.table import Table  # slow: 0.1 s
    from rich.text import Text

    content = Table()
    for index, column in enumerate(columns):
        content.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in cells:
        content.add_row(*map(Text, row))
    console(highlight=False).print(content)


def _print_lines(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{_GAP.join(padded).rstrip()}\n")


def help_text(text: str) -> str:
    """Return a text for ``--help``: paragraphs with an indented line keep their lines."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(f"\b\n{part}" if "\n  " in f"\n{part}" else part for part in paragraphs)
