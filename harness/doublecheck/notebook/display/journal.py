"""The display of a double's journal: a row for each request, which unfolds to the whole request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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
    pre,
    quiet,
    scrolled,
    table,
    title,
)
from doublecheck.notebook.display.trees import tree
from doublecheck.notebook_repr import counted
from doublecheck.wire.redaction import redacted_text

if TYPE_CHECKING:
    from doublecheck.values.double import JournalEntry

_SHOWN = 200
_BODY_CHARS = 8000
_UNKNOWNS = 2


def entry(shown: JournalEntry) -> Markup:
    """Return a request that a double served."""
    at, _, *rest = _row(shown)
    return box(table(_HEADS, [[at, _request_line(shown), *rest]], right=["ms"]), *_all(shown))


def journal(shown: Sequence[JournalEntry]) -> Markup:
    """Return the requests that a double served, the newest last."""
    if not shown:
        return box(quiet("No request has been served."))
    left_out = len(shown) - _SHOWN
    more = f"the last {_SHOWN} of them; journal[:{left_out}] has the others"
    return box(
        title(counted(len(shown), "request"), quiet(more) if left_out > 0 else None),
        table(_HEADS, [_row(one) for one in shown[-_SHOWN:]], right=["ms"]),
    )


_HEADS = ["at", "request", "status", "ms", "relied on", "faults"]


def _row(one: JournalEntry) -> list[str | None]:
    return [
        quiet(one.at.strftime("%H:%M:%S")),
        folded(_request_line(one), *_all(one)),
        status(one.status),
        "" if one.duration_ms is None else f"{one.duration_ms:.0f}",
        _unknowns(one.unknowns),
        joined([badge(name, WARNING) for name in one.faults], " "),
    ]


def _request_line(one: JournalEntry) -> Markup:
    parts = urlsplit(one.url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return element("span", element("b", one.method), " ", code(clipped(redacted_text(path), 200)))


def status(code_: int | None) -> Markup:
    """Return the status of an answer."""
    if code_ is None:
        return badge("no answer", BAD)
    tones = {2: GOOD, 3: INFO, 4: WARNING}
    return badge(str(code_), tones.get(code_ // 100, BAD))


def _unknowns(names: Sequence[str]) -> Markup:
    if len(names) <= _UNKNOWNS:
        return joined([badge(name) for name in names], " ")
    summed = badge(counted(len(names), "unknown"), QUIET)
    told = element("div", ", ".join(names), style="white-space:normal")
    return element("div", folded(summed, told), style="white-space:nowrap")


def _all(one: JournalEntry) -> list[Markup]:
    parts = [
        section("Request", one.request_headers, one.request_body),
        section("Answer", one.response_headers, one.response_body),
        folded("curl", pre(redacted_text(one.curl))),
    ]
    if one.unread:
        parts.insert(0, element("div", quiet(f"Nothing acted on: {', '.join(one.unread)}.")))
    return parts


def section(name: str, headers: Mapping[str, str], body: str) -> Markup:
    """Return one half of an exchange: its folded headers, with the body below."""
    told = "\n".join(f"{key}: {value}" for key, value in headers.items())
    return element(
        "div",
        folded(name, pre(redacted_text(told))) if told else quiet(name),
        scrolled(_body(redacted_text(body))) if body else None,
    )


def _body(body: str) -> Markup:
    try:
        return element("div", tree(json.loads(body), opened=2), style="padding-left:.6em")
    except (ValueError, RecursionError):
        return pre(clipped(body, _BODY_CHARS))
