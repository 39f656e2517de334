"""What a comparison knows of the fields of an answer: which are ids, times, prose or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from doublecheck.comparing import volatile
from doublecheck.comparing.declared_fields import FIELDS, Field
from doublecheck.comparing.patterns import is_operation, is_path
from doublecheck.comparing.volatile import TIME, Piece

_INDEX = re.compile(r"\[\d+\]")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")


class Fields:
    """The declared fields of the answers to one operation."""

    def __init__(self, operation: str, fields: Iterable[Field] = FIELDS) -> None:
        self._fields = [one for one in fields if is_operation(operation, one.operations)]
        self._known: dict[str, Field | None] = {}

    def noun_of(self, value: Any, path: str) -> str | None:
        """Return the noun of an id, ``time`` for a time at its field, or None."""
        field = self._at(path)
        if field is None or isinstance(value, (bool, type(None))) or value == "":
            return None
        if field.kind == "time":
            return TIME if volatile.noun_of(value) == TIME else None
        return field.noun if field.kind == "id" and isinstance(value, (str, int)) else None

    def pieces(self, text: str, path: str) -> Iterator[Piece]:
        """Split prose at the ids and times in it, any other text at addresses in memory."""
        field = self._at(path)
        if field is not None and field.kind == "prose":
            return volatile.pieces(text)
        return _without_addresses(text)

    def is_json(self, path: str) -> bool:
        """Whether a text is declared as one that contains JSON."""
        field = self._at(path)
        return field is not None and field.kind == "json"

    def is_traceback(self, path: str) -> bool:
        """Whether a list is declared as a traceback."""
        field = self._at(path)
        return field is not None and field.kind == "traceback"

    def _at(self, path: str) -> Field | None:
        like = _INDEX.sub("[0]", path)  # elements of an array are alike, and there may be many
        if like not in self._known:
            found = (one for one in self._fields if is_path(like, one.paths))
            self._known[like] = next(found, None)
        return self._known[like]


def _without_addresses(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text; where an object lies in memory has no meaning."""
    end = 0
    for found in _ADDRESS.finditer(text):
        yield Piece(text[end : found.start()], None)
        yield Piece(found[0], TIME)
        end = found.end()
    yield Piece(text[end:], None)
