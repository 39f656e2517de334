"""A comparison as an HTML page: the differences first, the exchanges behind a click."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from doublecheck.compare.differences import (
    Class,
    Compared,
    Comparison,
    ConversationPart,
    Difference,
)
from doublecheck.core.frames import framed
from doublecheck.core.markup import Markup, clipped, element, joined
from doublecheck.core.notebook_repr import counted
from doublecheck.reports.page import badge, folded, page
from doublecheck.wire.exchanges import Exchange

T = TypeVar("T", ConversationPart, Compared, Difference)

_HEIGHT_PX = 460
_BODY_CHARS = 20_000
_VALUE_CHARS = 500


def render(comparison: Comparison) -> str:
    """Return the page; answers of the platforms appear as text."""
    asked = [part for part in comparison.parts if part.calls]
    skipped = [part for part in comparison.parts if part.skipped]
    return page(
        "Twin",
        element("h1", "Twin"),
        _about(comparison),
        *(_part(part, comparison) for part in _worst_first(asked)),
        element("h2", "Skipped") if skipped else None,
        element("ul", *(element("li", f"{part.name}: {part.skipped}") for part in skipped))
        if skipped
        else None,
    )


def frame(comparison: Comparison) -> Markup:
    """Return the page in a frame, for a notebook."""
    return framed(render(comparison), _HEIGHT_PX)


def _worst_first(classed: Iterable[T]) -> list[T]:
    """Sort parts, calls or differences by their class; those of the same class stay in order."""
    return sorted(classed, key=lambda it: list(Class).index(it.cls))


def _about(comparison: Comparison) -> Markup:
    return element(
        "section",
        element("p", badge(comparison.outcome), f" {comparison.summary()}"),
        element("p", f"double {comparison.double} · {comparison.name} {comparison.live}"),
        class_="about",
    )


def _part(part: ConversationPart, comparison: Comparison) -> Markup:
    """Return a part: its calls with differences, and the others folded."""
    differing = [] if part.only else [call for call in part.calls if call.cls is not Class.SAME]
    others = [call for call in part.calls if call not in differing]
    title = counted(len(others), "other call" if differing else "call")
    return element(
        "section",
        element("h2", f"{part.name} ", badge(part.cls.value, part.only or part.cls.value)),
        *(_call(call, comparison) for call in _worst_first(differing)),
        folded(title, *(_call(call, comparison) for call in others)) if others else None,
        class_="part",
    )


def _call(call: Compared, comparison: Comparison) -> Markup:
    rows = [*_rows(call.differences)] if not call.only else []
    return element(
        "div",
        element("p", badge(call.cls.value), " ", element("code", call.operation)),
        _table(rows, comparison) if rows else None,
        folded("request and answers", _sides(call, comparison)),
        class_="check",
    )


def _rows(differences: Sequence[Difference]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the differences, those that nothing explains first."""
    for difference in _worst_first(differences):
        double = "-" if difference.kind == "only live" else _written(difference.double)
        live = "-" if difference.kind == "only double" else _written(difference.live)
        kind = "" if difference.kind == "value" else difference.kind
        yield difference.path, double, live, difference.because or kind


def _table(rows: Sequence[tuple[str, ...]], comparison: Comparison) -> Markup:
    heads = ("difference", "double", comparison.name, "")
    return element(
        "table",
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *(element("tr", *map(_cell, row)) for row in rows)),
        class_="differences",
    )


def _cell(text: str) -> Markup:
    return element("td", element("code", text))


def _sides(call: Compared, comparison: Comparison) -> Markup:
    asked = call.double or call.live
    sides = (("double", call.double), (comparison.name, call.live))
    return joined(
        (
            element("pre", _request(asked), class_="request") if asked else None,
            element("div", *(_answer(*side) for side in sides), class_="sides"),
        )
    )


def _request(exchange: Exchange) -> str:
    request = exchange.request
    return f"{request.method} {request.url}\n\n{_text(request.content)}".strip()


def _answer(name: str, exchange: Exchange | None) -> Markup:
    if exchange is None:
        answer = "not asked"
    else:
        head = f"HTTP {exchange.status}" if exchange.error is None else exchange.error
        kind = {name.lower(): value for name, value in exchange.headers.items()}.get("content-type")
        answer = f"{head}\n{kind or ''}\n\n{_text(exchange.body)}".strip()
    return element("div", element("b", name), element("pre", answer, class_="answer"))


def _text(content: bytes) -> str:
    """Return a body as text; JSON is indented."""
    text = content.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return clipped(text, _BODY_CHARS)


def _written(value: Any) -> str:
    return clipped(json.dumps(value, ensure_ascii=False), _VALUE_CHARS)
