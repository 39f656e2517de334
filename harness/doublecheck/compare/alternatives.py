"""The alternatives of the unknowns that a double's answers relied on, and the answers under them.

The sweep changes the double itself, because whole tests run again. ``twin`` has single requests
sent again, on fresh doubles, and leaves the double as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentdouble.core import ledger
from doublecheck.client._sync.platform import Platform
from doublecheck.errors import DoubleCheckError
from doublecheck.target.target import Target
from doublecheck.values.double import JournalEntry
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import Exchange, without_secrets

UNKNOWNS = "x-agentdouble-unknowns"


def alternatives(
    relied_on: Iterable[str], in_force: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each other answer that a double supports, with its unknown."""
    for id_ in relied_on:
        unknown = ledger.find(id_)
        for answer in (unknown.default, *unknown.alternatives):
            if answer.built and answer.name != in_force[id_]:
                yield id_, answer.name


def choose(target: Target, choice: dict[str, str]) -> None:
    """Change the answers of a double."""
    with Platform(target) as platform:
        platform._choose(choice)


def relied_on(exchange: Exchange) -> frozenset[str]:
    """Return the unknowns that a double's answer relied on, according to its header."""
    return frozenset(exchange.headers.get(UNKNOWNS, "").replace(",", " ").split())


@dataclass(frozen=True)
class Recorded:
    """A call of a double, with the id of its entry in the journal if there is one.

    The header of its answer names all unknowns that it relied on, except for settled ones.
    """

    exchange: Exchange
    entry: int | None = None


class DoubleAnswers:
    """The unknowns that a double's answers relied on, and its answers under alternatives.

    It reads what the double serves from now on. An answer in a profile comes from a deployment, so
    its unknown explains no difference.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._open: Mapping[str, str] = {}  # the answers in force, without settled ones
        self._last = 0
        if target.admin:
            with Platform(target) as platform:
                usage = platform._unknowns()
            settled = usage.settled
            self._open = {id_: it for id_, it in usage.in_force.items() if id_ not in settled}
            self._last = usage.last

    def recorded(self, exchanges: Sequence[Exchange]) -> Sequence[Recorded]:
        """Return exchanges with all unsettled unknowns that they relied on.

        The headers of a stream are sent before its end; the journal has the later unknowns.
        """
        if not self._target.admin:
            return [Recorded(exchange) for exchange in exchanges]
        with Platform(self._target) as platform:
            entries = platform._journal(after=self._last)
        self._last = max((entry.id for entry in entries), default=self._last)
        remaining = list(entries)
        return [self._recorded(exchange, remaining) for exchange in exchanges]

    def _recorded(self, exchange: Exchange, entries: list[JournalEntry]) -> Recorded:
        """Return an exchange with its entry, the first that fits, and remove this entry."""
        request, unknowns = exchange.request, relied_on(exchange)
        sent = (request.method, request.url, request.content)
        entry = next((entry for entry in entries if sent == _sent(entry)), None)
        if entry is not None:
            entries.remove(entry)
            unknowns |= frozenset(entry.unknowns if is_stream(exchange) else ())
        headers = {**exchange.headers, UNKNOWNS: ", ".join(sorted(unknowns & self._open.keys()))}
        named = dataclasses.replace(exchange, headers=headers)
        return Recorded(named, None if entry is None else entry.id)

    def others(self, answer: Exchange) -> Sequence[tuple[str, str]]:
        """Return the alternatives of the open unknowns that an answer relied on."""
        unknowns = relied_on(answer) & self._open.keys() & ledger.unknowns().keys()
        visible = (id_ for id_ in sorted(unknowns) if ledger.find(id_).not_visible is None)
        return list(alternatives(visible, self._open))

    def under(self, call: Recorded, choices: Sequence[Mapping[str, str]]) -> Sequence[Exchange]:
        """Return the answers under choices, in order; none if the request cannot be sent again."""
        if call.entry is None:
            return ()
        try:
            with Platform(self._target) as platform:
                answers = platform._alternatives(call.entry, choices)
        except DoubleCheckError:  # the journal lacks something, or the double is an older one
            return ()
        request = call.exchange.request
        exchanges = [Exchange(request, it.status, it.headers, it.body, it.error) for it in answers]
        return without_secrets(exchanges, self._target)


def _sent(entry: JournalEntry) -> tuple[str, str, bytes]:
    return entry.method, entry.url, entry.request_body.encode()
