"""The platform calls of a failed test, as a section of its report.

pytest shows such a section like captured logs: ``--show-capture`` hides it, and pytest-xdist
transfers it from a worker. The calls are those of our clients. For a double that the test has
reset, they are those of its journal, which includes the calls of the code under test.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from urllib.parse import parse_qs, urlsplit

import pytest

from agentdouble.errors.tracebacks import origin_of
from doublecheck.client import transport
from doublecheck.client._sync.connection import Connection
from doublecheck.core.notebook_repr import visible
from doublecheck.target.target import Target
from doublecheck.values.executions import BashResult, CodeResult, plain
from doublecheck.wire import admin
from doublecheck.wire.call_log import CallLog
from doublecheck.wire.exchanges import Exchange, of_entry, without_secrets
from doublecheck.wire.results import body_of, code_of, result_of

_SHOWN = 20
_LINES, _CHARS = 12, 1000
_WITHIN_S = 5.0


def section(item: pytest.Item, log: CallLog) -> str:
    """Return the calls of a user's test as text, without secrets, or "" if it made none."""
    if origin_of(str(item.path)) != "user":
        return ""
    calls = [
        (target, exchange)
        for target, exchange in _all(log)
        if admin.PREFIX not in exchange.request.url
    ]
    if not calls:
        return ""
    lines = [f"... {len(calls) - _SHOWN} earlier calls"] * (len(calls) > _SHOWN)
    several = len({target.url for target, _ in calls}) > 1
    for target, exchange in calls[-_SHOWN:]:
        lines += _lines(exchange, f" of {target.url}" if several else "")
    return "\n".join(lines)


def _all(log: CallLog) -> Iterator[tuple[Target, Exchange]]:
    """Yield the calls in the journals of doubles that were reset, and ours to other platforms."""
    recorded = list(_safe(log))
    journals = {
        target.url: _journal(target)
        for target, exchange in recorded
        if urlsplit(exchange.request.url).path == f"{admin.PREFIX}/reset"
    }
    for target in {target.url: target for target, _ in recorded}.values():
        entries = journals.get(target.url)
        if entries is not None:
            yield from ((target, exchange) for exchange in without_secrets(entries, target))
    for target, exchange in recorded:
        if journals.get(target.url) is None or exchange.status is None:
            yield target, exchange


def _journal(target: Target) -> list[Exchange] | None:
    """Return the exchanges in a double's journal, or None if it cannot be read."""
    with suppress(Exception), closing(Connection(target, timeout_s=_WITHIN_S).http) as http:
        request = admin.request(target, "A journal", "GET", "/journal?bodies=true")
        entries = admin.read_journal(http.request(**transport.arguments(request)))
        return [of_entry(entry) for entry in entries]
    return None  # a mock of the test answers for the double, for example


def _safe(log: CallLog) -> Iterator[tuple[Target, Exchange]]:
    for target, recording in tuple(log):
        (exchange,) = without_secrets([recording.exchange], target)
        yield target, exchange


def _lines(exchange: Exchange, where: str) -> Iterator[str]:
    came = exchange.status if exchange.error is None else exchange.error
    took = f"{exchange.elapsed_s * 1000:.0f} ms"
    yield f"{exchange.request.method} {_operation(exchange)}{where}: {came}, {took}"
    yield from _indented(_bodies(exchange))


def _operation(exchange: Exchange) -> str:
    """Return the operation of a request: its path, or the control-plane action."""
    parts = urlsplit(exchange.request.url)
    action, body = parse_qs(parts.query).get("Action"), body_of(exchange)
    if action:
        return " in ".join(str(part) for part in (action[0], body.get("UserSessionId")) if part)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.path}{query} {body.get('method', '') if 'jsonrpc' in body else ''}".strip()


def _bodies(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Yield the bodies of the request and the answer, each with a title."""
    sent, result = code_of(exchange), result_of(exchange)
    if sent is None:
        yield "sent", exchange.request.content.decode(errors="backslashreplace")
    else:
        yield sent[1], sent[0]
    if isinstance(result, (CodeResult, BashResult)):
        yield "stdout", result.stdout
        yield "stderr", result.stderr
        yield "value", getattr(result, "text", None) or ""
    error = None if result is None else result.failure()
    if error is not None:
        yield "error", error.traceback or str(error)
    elif not isinstance(result, (CodeResult, BashResult)):
        yield "answer", exchange.body.decode(errors="backslashreplace")


def _indented(sections: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in sections:
        lines = visible(_shortened(plain(text))).splitlines()
        if len(lines) == 1:
            yield f"    {name}: {lines[0]}"
        elif lines:
            yield f"    {name}:"
            yield from (textwrap.indent(line, " " * 8) for line in lines)


def _shortened(text: str) -> str:
    """Return the beginning and the end of a long text."""
    if len(text) > _CHARS:
        cut = len(text) - _CHARS
        text = f"{text[: _CHARS // 2]}\n... {cut} characters ...\n{text[-_CHARS // 2 :]}"
    lines = text.splitlines()
    if len(lines) > _LINES:
        half = _LINES // 2
        lines = [*lines[:half], f"... {len(lines) - _LINES} lines ...", *lines[-half:]]
    return "\n".join(lines)
