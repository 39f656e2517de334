"""How the result of a command looks: as in a terminal, with how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.notebook.display.elements import Markup
from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    WARNING,
    badge,
    box,
    clipped,
    code,
    coloured,
    pre,
    title,
)

if TYPE_CHECKING:
    from doublecheck.results import BashResult


def result(shown: BashResult) -> Markup:
    """Return a command, what it wrote, and its exit code."""
    return box(
        title("$", code(clipped(shown.command, 500)), _ended(shown)),
        pre(coloured(clipped(shown.stdout, whole="result.stdout"))) if shown.stdout else None,
        pre(coloured(clipped(shown.stderr, whole="result.stderr")), tone=WARNING)
        if shown.stderr
        else None,
    )


def _ended(shown: BashResult) -> Markup:
    if shown.exit_code is None:
        return badge(shown.status, WARNING)
    return badge(f"exit {shown.exit_code}", BAD if shown.exit_code else GOOD)
