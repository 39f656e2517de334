"""Compare two JSON documents by structure: missing parts, other types and other values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from doublecheck.comparing import volatile
from doublecheck.comparing.differences import Difference
from doublecheck.comparing.fields import Fields
from doublecheck.comparing.references import Pairs, References, parsed
from doublecheck.comparing.volatile import TIME

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LARGEST_ALIGNED = 1_000_000  # pairs of elements; the alignment compares each of them


def compare(
    double: Any, live: Any, pairs: Pairs, fields: Fields, path: str = "$"
) -> Iterator[Difference]:
    """Yield the differences of two documents in the order of the double's.

    Documents come from ``references.loaded``, which refuses one that is nested too deeply.
    ``fields`` tells the ids and times, whose values are not compared as they are.
    """
    return _Structure(pairs, fields).compare(double, live, path)


def shown(document: Any, pairs: Pairs, side: str) -> Any:
    """Return a document of one side with the ids that have a name replaced by it."""
    references = pairs.double if side == "double" else pairs.live
    if isinstance(document, str):
        return references.known(document) or references.replaced(document)
    if isinstance(document, Mapping):
        return {name: shown(value, pairs, side) for name, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [shown(value, pairs, side) for value in document]
    return document


class _Structure:
    def __init__(self, pairs: Pairs, fields: Fields) -> None:
        self._pairs = pairs
        self._fields = fields

    def compare(self, double: Any, live: Any, path: str) -> Iterator[Difference]:
        if isinstance(double, Mapping) and isinstance(live, Mapping):
            yield from self._objects(double, live, path)
        elif isinstance(double, list) and isinstance(live, list):
            yield from self._arrays(double, live, path)
        elif isinstance(double, str) and isinstance(live, str):
            yield from self._strings(double, live, path)
        elif _type(double) != _type(live):
            yield self._difference("type", path, double, live)
        elif not self._match(double, live, path):
            yield self._difference("value", path, double, live)

    def _objects(
        self, double: Mapping[str, Any], live: Mapping[str, Any], path: str
    ) -> Iterator[Difference]:
        for name, value in double.items():
            where = path + _step(name)
            if name in live:
                yield from self.compare(value, live[name], where)
            else:
                yield self._only_double(where, value)
        for name, value in live.items():
            if name not in double:
                yield self._only_live(path + _step(name), value)

    def _arrays(self, double: list[Any], live: list[Any], path: str) -> Iterator[Difference]:
        if double and live and self._fields.is_traceback(path):
            return
        if len(double) != len(live):
            yield from self._aligned(double, live, path)
        elif self._same_but_order(double, live, path):
            yield self._difference("order", path, double, live)
        else:
            for index, (one, other) in enumerate(zip(double, live, strict=True)):
                yield from self.compare(one, other, f"{path}[{index}]")

    def _aligned(self, double: list[Any], live: list[Any], path: str) -> Iterator[Difference]:
        """Compare arrays of different lengths, matching elements that look alike."""
        for start, end, live_start, live_end in _alignment(double, live):
            both = min(end - start, live_end - live_start)
            for offset in range(both):
                ours, theirs = double[start + offset], live[live_start + offset]
                yield from self.compare(ours, theirs, f"{path}[{start + offset}]")
            for index in range(start + both, end):
                yield self._only_double(f"{path}[{index}]", double[index])
            for index in range(live_start + both, live_end):
                yield self._only_live(f"{path}[{index}]", live[index])

    def _same_but_order(self, double: Sequence[Any], live: Sequence[Any], path: str) -> bool:
        where = f"{path}[0]"
        ours = [_written(self._masked(one, self._pairs.double, where)) for one in double]
        theirs = [_written(self._masked(one, self._pairs.live, where)) for one in live]
        return ours != theirs and len(set(ours)) == len(ours) and sorted(ours) == sorted(theirs)

    def _masked(self, document: Any, references: References, path: str) -> Any:
        """Return a document with names in place of its ids and times."""
        if isinstance(document, Mapping):
            return {
                name: self._masked(value, references, path + _step(name))
                for name, value in document.items()
            }
        if isinstance(document, list):
            return [self._masked(one, references, f"{path}[0]") for one in document]
        noun = self._fields.noun_of(document, path)
        if noun is not None:
            return references.known(str(document)) or f"<{noun}>"
        if not isinstance(document, str):
            return document
        return "".join(
            piece.text if piece.noun is None else references.known(piece.text) or f"<{piece.noun}>"
            for piece in self._fields.pieces(references.replaced(document), path)
        )

    def _strings(self, double: str, live: str, path: str) -> Iterator[Difference]:
        if self._fields.is_json(path):
            inner, live_inner = parsed(double), parsed(live)
            if inner is not None and live_inner is not None:
                yield from self.compare(inner, live_inner, path)
                return
        if not self._match(double, live, path) and not self._same_text(double, live, path):
            yield self._difference("value", path, double, live)

    def _match(self, double: Any, live: Any, path: str) -> bool:
        """Whether two values are the same, or two ids of the same thing, or two times."""
        noun = self._fields.noun_of(double, path)
        live_noun = self._fields.noun_of(live, path)
        if noun is None or live_noun is None or (noun == TIME) != (live_noun == TIME):
            return bool(double == live)
        return noun == TIME or self._pairs.link(str(double), str(live), noun)

    def _same_text(self, double: str, live: str, path: str) -> bool:
        """Whether two texts are the same except for ids and times that match."""
        if self._fields.noun_of(double, path) or self._fields.noun_of(live, path):
            return False
        ours = list(self._fields.pieces(self._pairs.double.replaced(double), path))
        theirs = list(self._fields.pieces(self._pairs.live.replaced(live), path))
        if [one.noun for one in ours] != [one.noun for one in theirs]:
            return False
        together = list(zip(ours, theirs, strict=True))
        if any(one.text != other.text for one, other in together if one.noun is None):
            return False
        return all(
            one.noun == TIME or self._pairs.link(one.text, other.text, one.noun)
            for one, other in together
            if one.noun is not None
        )

    def _difference(self, kind: Any, path: str, double: Any, live: Any) -> Difference:
        ours, theirs = shown(double, self._pairs, "double"), shown(live, self._pairs, "live")
        return Difference(kind, path, ours, theirs)

    def _only_double(self, path: str, value: Any) -> Difference:
        return Difference("only double", path, double=shown(value, self._pairs, "double"))

    def _only_live(self, path: str, value: Any) -> Difference:
        return Difference("only live", path, live=shown(value, self._pairs, "live"))


def _alignment(double: list[Any], live: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    if len(double) * len(live) > _LARGEST_ALIGNED:
        yield 0, len(double), 0, len(live)
        return
    ours, theirs = [_shape(one) for one in double], [_shape(one) for one in live]
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for _, start, end, live_start, live_end in matcher.get_opcodes():
        yield start, end, live_start, live_end


def _type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def _shape(value: Any) -> str:
    """Return the shape by which elements are matched."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_shape(one)}" for name, one in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{_shape(value[0]) if value else ''}]"
    return _type(value) if volatile.noun_of(value) else repr(value)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _step(name: str) -> str:
    return f".{name}" if _WORD.fullmatch(name) else f"[{json.dumps(name)}]"
