"""The display of a client's exchanges: a row for each, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from doublecheck.notebook.display.journal import section, status
from doublecheck.notebook.display.markup import (
    BAD,
    Markup,
    badge,
    box,
    clipped,
    code,
    element,
    folded,
    pre,
    quiet,
    table,
    title,
)
from doublecheck.notebook_repr import counted
from doublecheck.wire.exchanges import Exchange, curl, redacted

_HEADS = ["request", "came to", "ms"]


def exchange(shown: Exchange) -> Markup:
    """Return a request and its outcome as HTML."""
    safe = redacted(shown)
    return box(
        table(_HEADS, [[_request_line(safe), *_outcome_cells(safe)]], right=["ms"]), *_all(shown)
    )


def exchanges(shown: Sequence[Exchange]) -> Markup:
    """Return requests and their outcomes as HTML, the newest last."""
    if not shown:
        return box(quiet("Nothing has been asked yet."))
    rows = [_row(one) for one in shown]
    return box(title(counted(len(rows), "exchange")), table(_HEADS, rows, right=["ms"]))


def _row(one: Exchange) -> list[str | None]:
    safe = redacted(one)
    return [folded(_request_line(safe), *_all(one)), *_outcome_cells(safe)]


def _request_line(safe: Exchange) -> Markup:
    return element("span", element("b", safe.request.method), " ", code(safe.request.url))


def _outcome_cells(safe: Exchange) -> list[str]:
    return [_outcome(safe), f"{safe.elapsed_s * 1000:.0f}"]


def _all(one: Exchange) -> list[Markup]:
    safe = redacted(one)
    return [
        section("Request", safe.request.headers, _text(safe.request.content)),
        section("Answer", safe.headers, _text(safe.body)),
        folded("curl", pre(clipped(curl(one)))),
    ]


def _outcome(one: Exchange) -> Markup:
    if one.error is not None:
        return badge(clipped(one.error, 80), BAD)
    return quiet("under way") if one.status is None else status(one.status)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
