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
)
from doublecheck.core.notebook_repr import clock_time, counted
from doublecheck.core.trees import tree
from doublecheck.wire.exchanges import Exchange, curl, of_entry, redacted, redacted_text

if TYPE_CHECKING:
    from doublecheck.values.double import JournalEntry, SandboxInfo, Unknown, Unknowns

_SHOWN = 200
_BODY_CHARS = 8000
_SOON_S = 120.0
_JOURNAL = ["at", "request", "status", "ms", "relied on", "faults"]
_EXCHANGES = ["request", "outcome", "ms"]
_UNKNOWNS = ["unknown", "current answer", "alternatives"]


def session(session: SandboxInfo) -> Markup:
    """Return a session with its remaining time."""
    return sessions((session,))


def sessions(sessions: Sequence[SandboxInfo]) -> Markup:
    """Return sessions with their remaining times at the moment of the request."""
    if not sessions:
        return box(quiet("No active sessions. The first run_code() creates one."))
    rows = [
        [
            joined((element("b", it.user_session_id), element("div", code(it.session_id)))),
            toned(clock_time(it.remaining_s), WARNING if it.remaining_s < _SOON_S else GOOD),
            it.deadline.strftime("%H:%M:%S %Z"),
            str(it.executions),
        ]
        for it in sorted(sessions, key=lambda session: session.remaining_s)
    ]
    return box(
        title(counted(len(sessions), "session")),
        table(["session", "remaining", "until", "executions"], rows, right=["executions"]),
    )


def entry(entry: JournalEntry) -> Markup:
    """Return a request that a double served."""
    at, _, *columns = _entry_row(entry)
    return box(table(_JOURNAL, [[at, entry_line(entry), *columns]]), *_entry_details(entry))


def journal(entries: Sequence[JournalEntry]) -> Markup:
    """Return the requests that a double served, newest last."""
    if not entries:
        return box(quiet("No requests were served."))
    omitted = len(entries) - _SHOWN
    note = f"the last {_SHOWN} of them; journal[:{omitted}] has the others"
    return box(
        title(counted(len(entries), "request"), quiet(note) if omitted > 0 else None),
        table(_JOURNAL, [_entry_row(entry) for entry in entries[-_SHOWN:]], right=["ms"]),
    )


def exchange(exchange: Exchange) -> Markup:
    """Return a request and its outcome."""
    _, *columns = _exchange_row(exchange)
    line = _request_line(exchange.request.method, redacted(exchange).request.url)
    return box(table(_EXCHANGES, [[line, *columns]]), *_exchange_details(exchange))


def exchanges(exchanges: Sequence[Exchange]) -> Markup:
    """Return requests and their outcomes, newest last."""
    if not exchanges:
        return box(quiet("No requests yet."))
    rows = [_exchange_row(exchange) for exchange in exchanges]
    return box(title(counted(len(rows), "exchange")), table(_EXCHANGES, rows, right=["ms"]))


def unknowns(unknowns: Unknowns) -> Markup:
    """Return a ledger. The unknowns relied on are visible, the others folded."""
    relied_on = list(unknowns.relied_on.values())
    others = [unknown for unknown in unknowns.values() if not unknown.relied_on]
    return box(
        title("What the specification leaves open", quiet(f"{len(relied_on)} relied on")),
        table(_UNKNOWNS, map(_unknown_row, relied_on)) if relied_on else None,
        folded(f"{len(others)} others", table(_UNKNOWNS, map(_unknown_row, others))),
    )


def unknown(unknown: Unknown) -> Markup:
    """Return one question with its answers."""
    evidence = (element("div", quiet(str(it))) for it in unknown.evidence)
    return box(table(_UNKNOWNS, [_unknown_row(unknown)]), *evidence)


def _entry_row(entry: JournalEntry) -> list[str | None]:
    return [
        quiet(entry.at.strftime("%H:%M:%S")),
        folded(entry_line(entry), *_entry_details(entry)),
        _status(entry.status),
        "" if entry.duration_ms is None else f"{entry.duration_ms:.0f}",
        ", ".join(entry.unknowns),
        joined([badge(name, WARNING) for name in entry.faults], " "),
    ]


def entry_line(entry: JournalEntry) -> Markup:
    """Return the method and the path of a request."""
    url = urlsplit(entry.url)
    path = url.path + (f"?{url.query}" if url.query else "")
    return _request_line(entry.method, clipped(redacted_text(path), 200))


def _request_line(method: str, url: str) -> Markup:
    return element("span", element("b", method), " ", code(url))


def _entry_details(entry: JournalEntry) -> Iterator[Markup]:
    if entry.unread:
        yield element("div", quiet(f"Ignored: {', '.join(entry.unread)}."))
    yield from _exchange_details(of_entry(entry))


def _exchange_row(exchange: Exchange) -> list[str | None]:
    safe = redacted(exchange)
    if safe.error is not None:
        outcome = badge(clipped(safe.error, 80), BAD)
    else:
        outcome = quiet("under way") if safe.status is None else _status(safe.status)
    line = _request_line(safe.request.method, safe.request.url)
    details = _exchange_details(exchange)
    return [folded(line, *details), outcome, f"{safe.elapsed_s * 1000:.0f}"]


def _exchange_details(exchange: Exchange) -> Iterator[Markup]:
    safe = redacted(exchange)
    request, body = (it.decode("utf-8", "replace") for it in (safe.request.content, safe.body))
    yield _section("Request", safe.request.headers, request)
    yield _section("Answer", safe.headers, body)
    yield folded("curl", pre(clipped(curl(exchange))))


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


def _unknown_row(unknown: Unknown) -> list[str | None]:
    id_ = element("b", unknown.id, style="white-space:nowrap")
    settled = badge("settled", GOOD) if unknown.settled else None
    relied_on = badge("relied on", WARNING) if unknown.relied_on else None
    alternatives = (
        element("div", code(name), quiet(f" {meaning}" if meaning != name else ""))
        for name, meaning in unknown.alternatives.items()
    )
    return [
        joined((id_, quiet(f" section {unknown.section}"), element("div", unknown.question))),
        joined((code(unknown.answer), settled, relied_on, element("div", unknown.meaning))),
        joined(alternatives),
    ]
