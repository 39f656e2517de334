"""Tables of what the double has, on a terminal and for programs that read lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_UNBOUNDED = 10_000  # columns


def show(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of those columns; nothing in it is cut, so that it can be copied.

    Elsewhere than on a terminal nothing is folded either, so that a row is found by its line.
    """
    made = Table()
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(str(row.get(column, "")) for column in columns))
    width = None if sys.stdout.isatty() else _UNBOUNDED
    Console(highlight=False, width=width).print(made)
