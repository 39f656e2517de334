"""The unknowns that a double's answers rely on: what may explain a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from functools import cached_property

from doublecheck.client._sync.platform import Platform
from doublecheck.values.double import JournalEntry
from doublecheck.wire.event_stream import is_stream
from doublecheck.wire.exchanges import Exchange
from doublecheck.wire.results import response_of

_UNKNOWNS = "x-agentdouble-unknowns"


class Guesses:
    """The unknowns of one double's answers, without those that its profile settles.

    What a profile settles is known from a deployment, so it explains no difference.
    """

    def __init__(self, double: Platform) -> None:
        self._double = double

    def named(self, exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
        """Return exchanges whose headers name all unknowns that the double guessed at.

        The headers of a stream are sent before its end; the journal has the later unknowns.
        """
        if not self._double.target.admin:
            return tuple(exchanges)
        entries: list[JournalEntry] = []
        if any(_is_stream(one) for one in exchanges):
            with Platform(self._double.target) as asking:
                entries = list(asking.journal())
        return tuple(self._named(one, entries) for one in exchanges)

    def _named(self, exchange: Exchange, entries: Sequence[JournalEntry]) -> Exchange:
        relied_on = set(_header(exchange, _UNKNOWNS).replace(",", " ").split())
        if _is_stream(exchange):
            relied_on |= set(_of_entry(exchange, entries))
        guesses = ", ".join(sorted(relied_on - self._settled))
        headers = {name: one for name, one in exchange.headers.items() if name.lower() != _UNKNOWNS}
        return dataclasses.replace(exchange, headers={**headers, _UNKNOWNS: guesses})

    @cached_property
    def _settled(self) -> frozenset[str]:
        with Platform(self._double.target) as asking:
            return frozenset(id_ for id_, one in asking.unknowns().items() if one.settled)


def _of_entry(exchange: Exchange, entries: Sequence[JournalEntry]) -> Collection[str]:
    """Return the unknowns of the last journal entry about a request."""
    request = exchange.request
    for entry in reversed(entries):
        asked = (entry.method, entry.url, entry.request_body.encode())
        if asked == (request.method, request.url, request.content):
            return entry.unknowns
    return ()


def _is_stream(exchange: Exchange) -> bool:
    return is_stream(response_of(exchange))


def _header(exchange: Exchange, wanted: str) -> str:
    return next((one for name, one in exchange.headers.items() if name.lower() == wanted), "")
