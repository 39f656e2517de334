"""The report of a failed check: the clause, the last exchanges, and the command to repeat it."""

from __future__ import annotations

import dataclasses
import io
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.clauses import Clause
from doublecheck.contracts.hosting import Hosted
from doublecheck.wire.exchanges import Exchange, curl, redact, redacted

SHOWN = 2
BODY_CHARS = 2000


class Failure:
    """A failure as pytest shows it, between the clause that failed and the last exchanges.

    ``where`` are the options of ``doublecheck run`` for the platform. ``example`` is the smallest
    generated input for which the check fails, in words.
    """

    def __init__(
        self,
        clause: Clause,
        shown: Any,
        exchanges: Sequence[Exchange],
        secrets: Collection[str] = (),
        where: Sequence[str] = (),
        example: str = "",
    ) -> None:
        self._clause = clause
        self._shown = shown
        self._exchanges = exchanges
        self._secrets = secrets
        self._example = example
        self._again = shlex.join(["doublecheck", "run", *where, "--only", clause.id])
        self.reprcrash = self._redacted(getattr(shown, "reprcrash", None))  # the name is pytest's

    @property
    def reason(self) -> str:
        """The reason of the failure, without the traceback."""
        return self.reprcrash.message if self.reprcrash else str(self)

    def toterminal(self, writer: Any) -> None:
        """Write the failure to pytest's terminal."""
        writer.line(str(self._clause), bold=True)
        for line in self._before()[1:]:
            writer.line(line)
        writer.write(redact(_rendered(self._shown, writer), self._secrets))
        for line in self._after():
            writer.line(line)

    def __str__(self) -> str:
        return "\n".join((*self._before(), redact(str(self._shown), self._secrets), *self._after()))

    def _redacted(self, crash: Any) -> Any:
        """Return the location and the message of the failure, redacted."""
        if crash is None:
            return None
        return dataclasses.replace(crash, message=redact(crash.message, self._secrets))

    def _before(self) -> tuple[str, ...]:
        where = (str(self._clause), f"specification, section {self._clause.section}")
        example = (f"fails for {redact(self._example, self._secrets)}",) if self._example else ()
        return (*where, *example, "")

    def _after(self) -> Iterator[str]:
        return (redact(line, self._secrets) for line in self._exchanged())

    def _exchanged(self) -> Iterator[str]:
        for exchange in self._exchanges:
            yield ""
            yield from _exchange_lines(redacted(exchange))
        yield ""
        yield "Again:"
        if self._exchanges:
            yield f"  {curl(self._exchanges[-1])}"
        yield f"  {self._again}"


def last_exchanges(arguments: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """Return the last exchanges of a check's platforms, without the double's admin requests."""
    platforms = [one for one in arguments.values() if isinstance(one, Platform)]
    for one in arguments.values():
        platforms += one.opened if isinstance(one, Hosted) else ()
    found: list[Exchange] = []
    for platform in sorted(platforms, key=lambda one: one is arguments.get("platform")):
        found += [one for one in platform.exchanges if "/_emulator/" not in one.request.url]
        if found:
            break
    return tuple(found[-SHOWN:])


def _rendered(shown: Any, writer: Any) -> str:
    """Return pytest's text of a failure; it may quote an answer, with its keys."""
    text = io.StringIO()
    other = type(writer)(text)
    other.hasmarkup = writer.hasmarkup
    shown.toterminal(other)
    return text.getvalue()


def _exchange_lines(exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    yield f"> {request.method} {request.url}"
    yield from (f"> {name}: {value}" for name, value in request.headers.items())
    yield from _body("> ", request.content)
    if exchange.status is None:
        yield f"< no answer: {exchange.error or 'it has not come yet'}"
        return
    yield f"< HTTP {exchange.status}, after {exchange.elapsed_s * 1000:.0f} ms"
    yield from (f"< {name}: {value}" for name, value in exchange.headers.items())
    yield from _body("< ", exchange.body)
    if exchange.error:
        yield f"< broken off: {exchange.error}"


def _body(mark: str, content: bytes) -> Iterator[str]:
    text = content.decode(errors="backslashreplace")
    cut = text[:BODY_CHARS]
    yield from (f"{mark}{line}" for line in ("", *cut.splitlines()) if content)
    if len(text) > BODY_CHARS:
        yield f"{mark}... {len(text) - BODY_CHARS} characters more"
