"""The parts of a comparison call by call: their content, wording and order.

The HTML page and the notebook show the same parts. A Look decides their appearance: the page has a
style sheet, which a notebook may remove.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from doublecheck.comparing.differences import Class, Difference
from doublecheck.notebook.display.markup import Markup, element, joined
from doublecheck.twins.comparison import Compared, Comparison, Part
from doublecheck.wire.exchanges import Exchange

TITLE = "The double and the live platform"
_HEADS = ("where", "what", "double", "live")


@dataclass(frozen=True)
class Look:
    """The building blocks of a comparison in one output format.

    ``verdict`` shows a class, ``text`` a text of an answer, ``value`` one of the different values,
    as JSON. ``side`` takes the name of a platform and its answer.
    """

    verdict: Callable[[Class], Markup]
    code: Callable[[str], Markup]
    quiet: Callable[[str], Markup]
    text: Callable[[str], Markup]
    value: Callable[[str], Markup]
    folded: Callable[..., Markup]
    table: Callable[..., Markup]
    side: Callable[..., Markup]
    sides: Callable[..., Markup]


def summary(comparison: Comparison) -> str:
    """Return one line: the calls counted by class, and the skipped parts."""
    told = ", ".join(f"{count} {cls.value}" for cls, count in comparison.counts().items())
    skipped = sum(1 for part in comparison.parts if part.skipped)
    not_said = (
        f"; {skipped} of {len(comparison.parts)} parts were not carried out" if skipped else ""
    )
    return f"{len(comparison.calls)} calls: {told or 'none, so nothing was compared'}{not_said}."


def addresses(comparison: Comparison, look: Look) -> Markup:
    """Return the addresses of both platforms."""
    ours, theirs = look.code(comparison.double), look.code(comparison.live)
    return joined((look.quiet("double "), ours, look.quiet(", live "), theirs))


def not_carried_out(part: Part) -> str:
    """Return why a part was skipped."""
    return f"not carried out: {part.skipped}"


def call(one: Compared, look: Look, *, opened: bool) -> Markup:
    """Return a call on both platforms."""
    reasons = dict.fromkeys(each.because for each in one.differences if each.because)
    about = (look.code(one.operation), look.verdict(one.cls), look.quiet(", ".join(reasons)))
    sides = (_side("double", one.double, look), _side("live", one.live, look))
    return look.folded(
        joined(about, " "),
        differences(one.differences, look) if one.differences else None,
        look.folded("What was said", look.sides(*sides)),
        opened=opened,
    )


def differences(several: Sequence[Difference], look: Look) -> Markup:
    """Return the places where two answers differ, each with its class and reason."""
    return look.table(_HEADS, [[*_row(one, look)] for one in several])


def _row(one: Difference, look: Look) -> Iterator[Markup | None]:
    because = None if one.because is None else look.quiet(f" {one.because}")
    yield look.code(one.path)
    yield joined((look.verdict(one.cls), because))
    for value in (one.double, one.live):
        yield None if value is None else look.value(_json(value))


def _side(name: str, exchange: Exchange | None, look: Look) -> Markup:
    if exchange is None:
        return look.side(element("b", name), look.quiet("did not make this call"))
    return look.side(
        element("b", name), *(look.text(one) for one in _exchange_text(exchange) if one)
    )


def _exchange_text(exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    yield f"{request.method} {request.url}"
    yield request.content.decode("utf-8", "replace")
    yield f"HTTP {exchange.status}" if exchange.status else exchange.error or "no answer"
    yield exchange.body.decode("utf-8", "replace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)
