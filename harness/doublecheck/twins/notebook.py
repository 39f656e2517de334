"""A comparison in a notebook: diverging calls are open, the others are folded."""

from __future__ import annotations

from collections.abc import Mapping

from doublecheck.comparing.differences import Class, Difference
from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    ODD,
    WARNING,
    Markup,
    badge,
    box,
    clipped,
    code,
    columns,
    element,
    folded,
    joined,
    pre,
    quiet,
    scrolled,
    table,
    title,
)
from doublecheck.notebook_repr import counted
from doublecheck.twins import html_parts
from doublecheck.twins.comparison import Compared, Comparison, Part

_TONES: Mapping[Class, str] = {
    Class.DIVERGES: BAD,
    Class.ONLY_LIVE: ODD,
    Class.ONLY_DOUBLE: ODD,
    Class.ASSUMED: WARNING,
    Class.SAME: GOOD,
}
_VALUE_CHARS = 600
_FEW = 3  # this many differing but harmless calls are also open


def render(comparison: Comparison) -> Markup:
    """Return a comparison, part by part."""
    counts = comparison.counts().items()
    return box(
        title(
            html_parts.TITLE, *(badge(f"{count} {cls.value}", _TONES[cls]) for cls, count in counts)
        ),
        element("div", html_parts.addresses(comparison, _LOOK)),
        *(_part(part, few=_few(comparison)) for part in comparison.parts),
    )


def part(one: Part) -> Markup:
    """Return one part of a conversation."""
    return box(_part(one))


def call(one: Compared) -> Markup:
    """Return one call on both platforms."""
    return box(html_parts.call(one, _LOOK, opened=True))


def difference(one: Difference) -> Markup:
    """Return one place where two answers differ."""
    return box(html_parts.differences((one,), _LOOK))


def _few(comparison: Comparison) -> bool:
    """Whether so few calls differ that all of them can be shown at once."""
    differing = sum(count for cls, count in comparison.counts().items() if cls is not Class.SAME)
    return differing <= _FEW


def _open(cls: Class, few: bool) -> bool:
    return not cls.harmless or (few and cls is not Class.SAME)


def _part(part: Part, *, few: bool = False) -> Markup:
    if part.skipped:
        return element("div", quiet(f"{part.name}: {html_parts.not_carried_out(part)}"))
    calls = quiet(counted(len(part.calls), "call"))
    summed = joined((element("b", part.name), _badge(part.cls), calls), " ")
    shown = (html_parts.call(call, _LOOK, opened=_open(call.cls, few)) for call in part.calls)
    return folded(summed, *shown, opened=_open(part.cls, few))


def _badge(cls: Class) -> Markup:
    return badge(cls.value, _TONES[cls])


def _side(name: Markup, *said: Markup) -> Markup:
    return joined((name, scrolled(*said)))


_LOOK = html_parts.Look(
    verdict=_badge,
    code=code,
    quiet=quiet,
    text=lambda text: pre(clipped(text)),
    value=lambda text: code(clipped(text, _VALUE_CHARS)),
    folded=folded,
    table=table,
    side=_side,
    sides=columns,
)
