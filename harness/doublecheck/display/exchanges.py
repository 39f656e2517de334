"""How exchanges of a client look: a row for each, without what is secret."""

from __future__ import annotations

from collections.abc import Sequence

from doublecheck.display.elements import Markup, element
from doublecheck.display.journal import section, status
from doublecheck.display.markup import (
    BAD,
    badge,
    box,
    clipped,
    code,
    folded,
    pre,
    quiet,
    table,
    title,
)
from doublecheck.exchanges import Exchange, curl, redacted
from doublecheck.showing import counted

_HEADS = ["request", "came to", "ms"]


def exchange(shown: Exchange) -> Markup:
    """Return a request and what came of it."""
    return box(table(_HEADS, [_row(shown, opened=True)], right=["ms"]))


def exchanges(shown: Sequence[Exchange]) -> Markup:
    """Return requests and what came of them, the newest last."""
    if not shown:
        return box(quiet("Nothing has been asked yet."))
    rows = [_row(one) for one in shown]
    return box(title(counted(len(rows), "exchange")), table(_HEADS, rows, right=["ms"]))


def _row(one: Exchange, *, opened: bool = False) -> list[str | None]:
    safe = redacted(one)
    asked = element("span", element("b", safe.request.method), " ", code(safe.request.url))
    parts = [
        section("Request", safe.request.headers, _text(safe.request.content)),
        section("Answer", safe.headers, _text(safe.body)),
        folded("curl", pre(clipped(curl(one)))),
    ]
    return [folded(asked, *parts, opened=opened), _came_to(safe), f"{one.elapsed_s * 1000:.0f}"]


def _came_to(one: Exchange) -> Markup:
    if one.error is not None:
        return badge(clipped(one.error, 80), BAD)
    return quiet("under way") if one.status is None else status(one.status)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
