"""What a comparison knows of the fields of an answer: which are ids, times, prose or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from doublecheck.comparing import volatile
from doublecheck.comparing.declared_fields import FIELDS, Field
from doublecheck.comparing.patterns import is_operation, is_path
from doublecheck.comparing.volatile import TIME, Piece

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")


class Fields(Protocol):
    """What a comparison knows of the fields of an answer."""

    def noun_of(self, value: Any, path: str, key: str) -> str | None:
        """Return the noun of an id, ``time``, or None for a value that is compared as it is."""
        ...

    def pieces(self, text: str, path: str) -> Iterator[Piece]:
        """Split a text into what is compared, and the ids and times in it."""
        ...

    def is_json(self, path: str) -> bool:
        """Whether a text is compared as the JSON in it."""
        ...

    def is_traceback(self, path: str, key: str) -> bool:
        """Whether a list is a traceback, whose lines are not compared."""
        ...


class ByForm:
    """Fields of which nothing is declared: ids and times are found by their form, everywhere."""

    def noun_of(self, value: Any, path: str, key: str) -> str | None:
        """Return the noun of an id, ``time``, or None."""
        return volatile.noun_of(value, key)

    def pieces(self, text: str, path: str) -> Iterator[Piece]:
        """Split a text at the ids and times in it."""
        return volatile.pieces(text)

    def is_json(self, path: str) -> bool:
        """Whether a text is compared as the JSON in it: always."""
        return True

    def is_traceback(self, path: str, key: str) -> bool:
        """Whether a list is a traceback."""
        return key == "traceback"


class Declared:
    """The declared fields of the answers to one operation."""

    def __init__(self, operation: str, fields: Iterable[Field] = FIELDS) -> None:
        self._fields = [one for one in fields if is_operation(operation, one.operations)]

    def noun_of(self, value: Any, path: str, key: str) -> str | None:
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

    def is_traceback(self, path: str, key: str) -> bool:
        """Whether a list is declared as a traceback."""
        field = self._at(path)
        return field is not None and field.kind == "traceback"

    def _at(self, path: str) -> Field | None:
        return next((one for one in self._fields if is_path(path, one.paths)), None)


BY_FORM = ByForm()


def _without_addresses(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text; where an object lies in memory has no meaning."""
    end = 0
    for found in _ADDRESS.finditer(text):
        yield Piece(text[end : found.start()], None)
        yield Piece(found[0], TIME)
        end = found.end()
    yield Piece(text[end:], None)
