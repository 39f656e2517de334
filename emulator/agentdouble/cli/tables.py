"""Tables on a terminal, and for programs that read lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_UNBOUNDED = 10_000  # columns


def show(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of these columns without cutting any value, so that values can be copied.

    Outside a terminal nothing is folded either, so that each row is one line.
    """
    made = Table()
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(str(row.get(column, "")) for column in columns))
    width = None if sys.stdout.isatty() else _UNBOUNDED
    Console(highlight=False, width=width).print(made)
