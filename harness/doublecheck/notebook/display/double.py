"""The displays of a double: its sessions, journal and unknowns, and of a client's exchanges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from doublecheck.core.markup import (
    BAD,
    GOOD,
    INFO,
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
    toned,
    tree,
)
from doublecheck.core.notebook_repr import clock_time, counted
from doublecheck.wire.exchanges import Exchange, curl, of_entry, redacted, redacted_text

if TYPE_CHECKING:
    from doublecheck.values.double import JournalEntry, Session
    from doublecheck.values.unknowns import Unknown, Unknowns

_SHOWN = 200
_BODY_CHARS = 8000
_SOON_S = 120.0
_JOURNAL = ["at", "request", "status", "ms", "relied on", "faults"]
_EXCHANGES = ["request", "outcome", "ms"]
_UNKNOWNS = ["unknown", "answer in force", "alternatives"]


def session(shown: Session) -> Markup:
    """Return a session with its remaining time."""
    return sessions((shown,))


def sessions(shown: Sequence[Session]) -> Markup:
    """Return sessions with their remaining times at the moment of the request."""
    if not shown:
        return box(quiet("No session is living. The first run_code() makes one."))
    rows = [
        [
            joined((element("b", each.user_session_id), element("div", code(each.session_id)))),
            toned(clock_time(each.remaining_s), WARNING if each.remaining_s < _SOON_S else GOOD),
            each.deadline.strftime("%H:%M:%S %Z"),
            str(each.executions),
        ]
        for each in sorted(shown, key=lambda each: each.remaining_s)
    ]
    return box(
        title(counted(len(shown), "session")),
        table(["session", "remaining", "until", "executions"], rows, right=["executions"]),
    )


def entry(shown: JournalEntry) -> Markup:
    """Return a request that a double served."""
    at, _, *rest = _entry_row(shown)
    return box(table(_JOURNAL, [[at, _entry_line(shown), *rest]]), *_entry_details(shown))


def journal(shown: Sequence[JournalEntry]) -> Markup:
    """Return the requests that a double served, the newest last."""
    if not shown:
        return box(quiet("No request has been served."))
    left_out = len(shown) - _SHOWN
    more = f"the last {_SHOWN} of them; journal[:{left_out}] has the others"
    return box(
        title(counted(len(shown), "request"), quiet(more) if left_out > 0 else None),
        table(_JOURNAL, [_entry_row(each) for each in shown[-_SHOWN:]], right=["ms"]),
    )


def exchange(shown: Exchange) -> Markup:
    """Return a request and its outcome."""
    _, *rest = _exchange_row(shown)
    line = _request_line(shown.request.method, redacted(shown).request.url)
    return box(table(_EXCHANGES, [[line, *rest]]), *_exchange_details(shown))


def exchanges(shown: Sequence[Exchange]) -> Markup:
    """Return requests and their outcomes, the newest last."""
    if not shown:
        return box(quiet("Nothing has been asked yet."))
    rows = [_exchange_row(each) for each in shown]
    return box(title(counted(len(rows), "exchange")), table(_EXCHANGES, rows, right=["ms"]))


def unknowns(shown: Unknowns) -> Markup:
    """Return a ledger; the unknowns relied on are visible, the others folded."""
    relied_on = list(shown.relied_on.values())
    others = [each for each in shown.values() if not each.relied_on]
    return box(
        title("What the specification leaves open", quiet(f"{len(relied_on)} relied on")),
        table(_UNKNOWNS, map(_unknown_row, relied_on)) if relied_on else None,
        folded(f"{len(others)} others", table(_UNKNOWNS, map(_unknown_row, others))),
    )


def unknown(shown: Unknown) -> Markup:
    """Return one question with its answers."""
    return box(table(_UNKNOWNS, [_unknown_row(shown)]), element("div", quiet(shown.evidence)))


def _entry_row(shown: JournalEntry) -> list[str | None]:
    return [
        quiet(shown.at.strftime("%H:%M:%S")),
        folded(_entry_line(shown), *_entry_details(shown)),
        _status(shown.status),
        "" if shown.duration_ms is None else f"{shown.duration_ms:.0f}",
        ", ".join(shown.unknowns),
        joined([badge(name, WARNING) for name in shown.faults], " "),
    ]


def _entry_line(shown: JournalEntry) -> Markup:
    url = urlsplit(shown.url)
    path = url.path + (f"?{url.query}" if url.query else "")
    return _request_line(shown.method, clipped(redacted_text(path), 200))


def _request_line(method: str, url: str) -> Markup:
    return element("span", element("b", method), " ", code(url))


def _entry_details(shown: JournalEntry) -> Iterator[Markup]:
    if shown.unread:
        yield element("div", quiet(f"Nothing acted on: {', '.join(shown.unread)}."))
    yield from _exchange_details(of_entry(shown))


def _exchange_row(shown: Exchange) -> list[str | None]:
    safe = redacted(shown)
    if safe.error is not None:
        outcome = badge(clipped(safe.error, 80), BAD)
    else:
        outcome = quiet("under way") if safe.status is None else _status(safe.status)
    line = _request_line(safe.request.method, safe.request.url)
    details = _exchange_details(shown)
    return [folded(line, *details), outcome, f"{safe.elapsed_s * 1000:.0f}"]


def _exchange_details(shown: Exchange) -> Iterator[Markup]:
    safe = redacted(shown)
    request, body = (each.decode("utf-8", "replace") for each in (safe.request.content, safe.body))
    yield _section("Request", safe.request.headers, request)
    yield _section("Answer", safe.headers, body)
    yield folded("curl", pre(clipped(curl(shown))))


def _status(status: int | None) -> Markup:
    if status is None:
        return badge("no answer", BAD)
    tones = {2: GOOD, 3: INFO, 4: WARNING}
    return badge(str(status), tones.get(status // 100, BAD))


def _section(name: str, headers: Mapping[str, str], body: str) -> Markup:
    """Return one half of an exchange: its folded headers, with the body below."""
    lines = "\n".join(f"{key}: {value}" for key, value in headers.items())
    return element(
        "div",
        folded(name, pre(redacted_text(lines))) if lines else quiet(name),
        scrolled(_body(redacted_text(body))) if body else None,
    )


def _body(body: str) -> Markup:
    try:
        return element("div", tree(json.loads(body), opened=2), style="padding-left:.6em")
    except (ValueError, RecursionError):
        return pre(clipped(body, _BODY_CHARS))


def _unknown_row(shown: Unknown) -> list[str | None]:
    id_ = element("b", shown.id, style="white-space:nowrap")
    settled = badge("settled", GOOD) if shown.settled else None
    relied_on = badge("relied on", WARNING) if shown.relied_on else None
    alternatives = (
        element("div", code(name), quiet(f" {meaning}" if meaning != name else ""))
        for name, meaning in shown.alternatives.items()
    )
    return [
        joined((id_, quiet(f" section {shown.section}"), element("div", shown.question))),
        joined((code(shown.answer), settled, relied_on, element("div", shown.meaning))),
        joined(alternatives),
    ]
