"""The display of answers of an A2A application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    INFO,
    QUIET,
    WARNING,
    Markup,
    badge,
    box,
    clipped,
    code,
    element,
    folded,
    joined,
    quiet,
)
from doublecheck.notebook.display.trees import tree

if TYPE_CHECKING:
    from doublecheck.values.agents import A2aAnswer

_TONES = {
    "completed": GOOD,
    "working": INFO,
    "submitted": INFO,
    "input-required": WARNING,
    "auth-required": WARNING,
    "failed": BAD,
    "rejected": BAD,
}


def answer(shown: A2aAnswer) -> Markup:
    """Return an answer: its state, its texts, and the whole answer folded."""
    return box(part(shown))


def part(shown: A2aAnswer) -> Markup:
    """Return an answer as part of a display."""
    state = shown.state and badge(shown.state, _TONES.get(shown.state, QUIET))
    ids = [code(one) for one in (shown.task_id, shown.context_id) if one]
    about = joined([one for one in (quiet(shown.kind), state or None) if one], " ")
    text = element("div", clipped(shown.text), style="white-space:pre-wrap;margin:.2em 0")
    raw = folded(
        element("span", about),
        element("div", quiet("task, context: "), joined(ids, ", ")) if ids else None,
        tree(shown.raw),
    )
    return element("div", raw, text if shown.texts else None, style="margin:.3em 0")
