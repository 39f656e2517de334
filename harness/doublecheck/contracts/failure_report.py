"""The report of a failed check: its cause, the last exchanges, how to repeat it, the traceback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.clauses import Clause
from doublecheck.contracts.hosting import Hosted
from doublecheck.errors import AbsentSurfaceError
from doublecheck.wire.exchanges import Exchange, curl, redact, redacted

SHOWN = 2
BODY_CHARS = 2000
_FRAMES = "Where the check failed:"
_NAMED = re.compile(r"/(app|user|session|artifact)s/[^/]+")
_ID = re.compile(r"\b(?=[a-z-]*\d)[0-9a-f-]{8,}\b")
_CLASS = re.compile(r"^(?:AssertionError|Failed|doublecheck\.errors\.\w+): ")


def route(method: str, url: str) -> str:
    """Return the route of a request, with the names of its path parameters."""
    path = _NAMED.sub(r"/\1s/{\1}", urlsplit(url).path)
    return f"{method} {_ID.sub('{id}', path)}"


def cause(error: BaseException, reason: str, exchanges: Sequence[Exchange]) -> str:
    """Return the root cause of a failure, without ids: it is the same for other checks.

    It is the missing surface or route, the last answer if the reason is about that refusal, or the
    first line of the reason.
    """
    if isinstance(error, AbsentSurfaceError):
        return "; ".join(error.answers)
    for exchange in exchanges[-1:]:
        status, url = exchange.status or 0, exchange.request.url
        marks = (exchange.body.decode(errors="replace"), urlsplit(url).path.rstrip("/"))
        about_it = any(mark and mark in reason for mark in marks)
        if status >= 400 and (about_it or re.search(rf"\b{status}\b", reason)):
            return f"{route(exchange.request.method, url)} answers HTTP {status}"
    first = sentence(reason).partition("\n")[0]
    return _ID.sub("...", first)


def explained(
    clause: Clause,
    reason: str,
    pytest_text: Any,
    exchanges: Sequence[Exchange],
    *,
    secrets: Collection[str] = (),
    where: Sequence[str] = (),
    example: str = "",
) -> str:
    """Return the reason of a failure, its clause, the last exchanges and pytest's text, redacted.

    ``where`` holds the options of ``doublecheck run`` for the platform. ``example`` describes the
    smallest generated input for which the check fails.
    """
    lines = [sentence(reason), heading(clause)]
    lines += [f"fails for {example}"] if example else []
    for exchange in exchanges:
        lines += ["", *_exchange_lines(redacted(exchange))]
    lines += ["", "Again:"]
    lines += [f"  {curl(exchange)}" for exchange in exchanges[-1:]]
    lines.append(f"  {shlex.join(['doublecheck', 'run', *where, '--only', clause.id])}")
    lines += ["", _FRAMES, str(pytest_text)]
    return redact("\n".join(lines), secrets)


def heading(clause: Clause) -> str:
    """Return the lines about the clause of a failed check."""
    return f"{clause}\nspecification, section {clause.section}"


def sentence(reason: str) -> str:
    """Return a reason without the class of the error."""
    return _CLASS.sub("", reason.strip())


def without_frames(details: str) -> tuple[str, str]:
    """Return a failure's report without pytest's text, and that text."""
    shown, _, frames = details.partition(f"\n{_FRAMES}\n")
    return shown, frames


def last_exchanges(arguments: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """Return the last exchanges of a check's platforms, without the double's admin requests."""
    platforms = [value for value in arguments.values() if isinstance(value, Platform)]
    for value in arguments.values():
        platforms += value.opened if isinstance(value, Hosted) else ()
    for platform in sorted(platforms, key=lambda value: value is arguments.get("platform")):
        exchanges = [it for it in platform.exchanges if "/_emulator/" not in it.request.url]
        if exchanges:
            return tuple(exchanges[-SHOWN:])
    return ()


def _exchange_lines(exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    yield f"> {request.method} {request.url}"
    yield from (f"> {name}: {value}" for name, value in request.headers.items())
    yield from _body("> ", request.content)
    if exchange.status is None:
        yield f"< no answer: {exchange.error or 'none has arrived yet'}"
        return
    yield f"< HTTP {exchange.status}, after {exchange.elapsed_s * 1000:.0f} ms"
    yield from (f"< {name}: {value}" for name, value in exchange.headers.items())
    yield from _body("< ", exchange.body)
    if exchange.error:
        yield f"< aborted: {exchange.error}"


def _body(mark: str, content: bytes) -> Iterator[str]:
    text = content.decode(errors="backslashreplace")
    cut = text[:BODY_CHARS]
    yield from (f"{mark}{line}" for line in ("", *cut.splitlines()) if content)
    if len(text) > BODY_CHARS:
        yield f"{mark}... {len(text) - BODY_CHARS} more characters"
