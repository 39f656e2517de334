"""References: names that replace ids and times, so that the rest can be compared.

An id is identified by its value: it has the same name in every field, text or call. ``Pairs``
matches the ids of two platforms: two ids at the same place belong together from then on, so the
comparison shows if a platform confuses ids.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from doublecheck.comparing import volatile
from doublecheck.comparing.volatile import TIME

_SHORTEST_IN_TEXT = 6  # a shorter id would also match parts of unrelated words
_DEEPEST = 100
CALL = "JSON-RPC id"  # the noun of the number of a request


class References:
    """The ids of one platform, by name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, value: str, name: str) -> None:
        """Give a value a name."""
        self._names[value] = name

    def name(self, value: str, noun: str) -> str:
        """Return the name of an id, such as ``<session 1>``; create one if needed."""
        if noun == TIME:
            return f"<{TIME}>"
        if value not in self._names:
            self._counts[noun] += 1
            self._names[value] = f"<{noun} {self._counts[noun]}>"
        return self._names[value]

    def known(self, value: str) -> str | None:
        """Return the name of an id, or None."""
        return self._names.get(value)

    def replaced(self, text: str) -> str:
        """Return a text with the ids in it that have names."""
        for value in sorted(self._names, key=len, reverse=True):
            if len(value) >= _SHORTEST_IN_TEXT and value in text:
                text = text.replace(value, self._names[value])
        return text

    def normalised(self, document: Any, key: str = "") -> Any:
        """Return a document with ids and times replaced by names."""
        if isinstance(document, Mapping):
            return {name: self.normalised(value, name) for name, value in document.items()}
        if isinstance(document, (list, tuple)):
            return [self.normalised(value, key) for value in document]
        noun = volatile.noun_of(document, key)
        if noun is not None:
            return self.name(str(document), noun)
        return self.text(document) if isinstance(document, str) else document

    def text(self, text: str) -> str:
        """Return a text with ids and times replaced by names."""
        return "".join(
            piece.text if piece.noun is None else self.name(piece.text, piece.noun)
            for piece in volatile.pieces(self.replaced(text))
        )


class Pairs:
    """The ids of a double and a live platform, matched with each other."""

    def __init__(self) -> None:
        self.double = References()
        self.live = References()
        self._counts: Counter[str] = Counter()
        self._live_of: dict[str, str] = {}
        self._double_of: dict[str, str] = {}
        self._same: set[str] = set()
        self.call = ("", "")  # the numbers of the two requests that are being compared

    def seed(self, name: str, double: str, live: str) -> None:
        """Declare that two values mean the same, ``<name>``, before the comparison."""
        known = double in self._live_of or live in self._double_of
        if double and live and double != live and not known:
            self._link(double, live, f"<{name}>")

    def link(self, double: str, live: str, noun: str) -> bool:
        """Return whether two ids match; two new ids are matched from now on."""
        if noun == CALL:
            return (double, live) == self.call
        if double in self._same or live in self._same:
            return double == live
        if double in self._live_of or live in self._double_of:
            return self._live_of.get(double) == live
        if double == live:
            self._same.add(double)
            return True
        self._counts[noun] += 1
        self._link(double, live, f"<{noun} {self._counts[noun]}>")
        return True

    def to_double(self, document: Any) -> Any:
        """Translate a document with the live platform's ids for the double."""
        if isinstance(document, str):
            return self._in_text(document)
        if isinstance(document, Mapping):
            return {name: self.to_double(value) for name, value in document.items()}
        if isinstance(document, (list, tuple)):
            return type(document)(self.to_double(value) for value in document)
        return document

    def _in_text(self, text: str) -> str:
        if text in self._double_of:
            return self._double_of[text]
        for live in sorted(self._double_of, key=len, reverse=True):
            if len(live) >= _SHORTEST_IN_TEXT and live in text:
                text = text.replace(live, self._double_of[live])
        return text

    def _link(self, double: str, live: str, name: str) -> None:
        self._live_of[double], self._double_of[live] = live, double
        self.double.add(double, name)
        self.live.add(live, name)


def loaded(text: str) -> Any:
    """Parse a text as JSON; raise ValueError if it is not JSON or is nested too deeply."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [document]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return document
    raise ValueError("nested too deeply")


def parsed(text: str) -> Any:
    """Parse a text as a JSON object or array; return None if it is neither."""
    try:
        return loaded(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def _inner(document: Any) -> Iterable[Any]:
    if isinstance(document, dict):
        return document.values()
    return document if isinstance(document, list) else ()
