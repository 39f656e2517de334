"""A comparison in a notebook: what diverges lies open, the rest is folded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from doublecheck.comparing.differences import Class, Difference
from doublecheck.display.elements import Markup, element, joined
from doublecheck.display.markup import (
    BAD,
    GOOD,
    ODD,
    WARNING,
    badge,
    box,
    clipped,
    code,
    columns,
    folded,
    pre,
    quiet,
    scrolled,
    table,
    title,
)
from doublecheck.exchanges import Exchange
from doublecheck.showing import counted
from doublecheck.twinning.comparison import Compared, Comparison, Part

_TONES: Mapping[Class, str] = {
    Class.DIVERGES: BAD,
    Class.ONLY_LIVE: ODD,
    Class.ONLY_DOUBLE: ODD,
    Class.ASSUMED: WARNING,
    Class.SAME: GOOD,
}
_VALUE_CHARS = 600
_FEW = 3  # calls that differ and yet are harmless lie open, too


def render(comparison: Comparison) -> Markup:
    """Return a comparison, part by part."""
    counted = (badge(f"{count} {cls.value}", _TONES[cls]) for cls, count in _counts(comparison))
    return box(
        title("The double and the live platform", *counted),
        element(
            "div",
            quiet("double "),
            code(comparison.double),
            quiet(", live "),
            code(comparison.live),
        ),
        *(_part(part, few=_few(comparison)) for part in comparison.parts),
    )


def part(one: Part) -> Markup:
    """Return one part of a conversation."""
    return box(_part(one))


def call(one: Compared) -> Markup:
    """Return one call on both platforms."""
    return box(_call(one, opened=True))


def difference(one: Difference) -> Markup:
    """Return one place where two answers differ."""
    return box(_differences((one,)))


def _counts(comparison: Comparison) -> Iterator[tuple[Class, int]]:
    yield from comparison.counts().items()


def _few(comparison: Comparison) -> bool:
    """Tell whether so few calls differ that all of them can be seen at once."""
    differing = sum(count for cls, count in _counts(comparison) if cls is not Class.SAME)
    return differing <= _FEW


def _open(cls: Class, few: bool) -> bool:
    return not cls.harmless or (few and cls is not Class.SAME)


def _part(part: Part, *, few: bool = False) -> Markup:
    if part.skipped:
        return element("div", quiet(f"{part.name}: not carried out: {part.skipped}"))
    calls = counted(len(part.calls), "call")
    summed = joined((element("b", part.name), _badge(part.cls), quiet(calls)), " ")
    shown = (_call(call, opened=_open(call.cls, few)) for call in part.calls)
    return folded(summed, *shown, opened=_open(part.cls, few))


def _call(call: Compared, *, opened: bool) -> Markup:
    because = dict.fromkeys(one.because for one in call.differences if one.because)
    summed = joined((code(call.operation), _badge(call.cls), quiet(", ".join(because))), " ")
    sides = (("double", call.double), ("live", call.live))
    return folded(
        summed,
        _differences(call.differences) if call.differences else None,
        folded("What was said", columns(*(_side(name, said) for name, said in sides))),
        opened=opened,
    )


def _differences(differences: tuple[Difference, ...]) -> Markup:
    rows = [
        (
            code(one.path),
            joined((_badge(one.cls), one.because and quiet(f" {one.because}"))),
            _value(one.double),
            _value(one.live),
        )
        for one in differences
    ]
    return table(("where", "what", "double", "live"), rows)


def _side(name: str, exchange: Exchange | None) -> Markup:
    if exchange is None:
        return joined((element("b", name), element("div", quiet("did not come to this call"))))
    return joined((element("b", name), scrolled(*(pre(one) for one in _said(exchange) if one))))


def _said(exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    yield f"{request.method} {request.url}"
    yield clipped(request.content.decode("utf-8", "replace"))
    yield f"HTTP {exchange.status}" if exchange.status else exchange.error or "no answer"
    yield clipped(exchange.body.decode("utf-8", "replace"))


def _value(value: Any) -> Markup | None:
    if value is None:
        return None
    return code(clipped(json.dumps(value, ensure_ascii=False, default=repr), _VALUE_CHARS))


def _badge(cls: Class) -> Markup:
    return badge(cls.value, _TONES[cls])
