"""Compare two JSON documents by structure: missing parts, other types and other values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from doublecheck.compare.differences import Difference, Kind
from doublecheck.compare.fields import Fields
from doublecheck.compare.ids import TIME, Pairs, is_volatile, parsed, pieces

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LARGEST_ALIGNED = 1_000_000  # pairs of elements; the alignment compares each of them


class Documents:
    """The comparison of the documents in the answers to one operation.

    Documents come from ``ids.loaded``, which refuses one that is nested too deeply.
    """

    def __init__(self, pairs: Pairs, fields: Fields) -> None:
        self._pairs = pairs
        self._fields = fields

    def compare(self, double: Any, live: Any, path: str = "$") -> Iterator[Difference]:
        """Yield the differences of two documents in the order of the double's."""
        if isinstance(double, Mapping) and isinstance(live, Mapping):
            yield from self._objects(double, live, path)
        elif isinstance(double, list) and isinstance(live, list):
            yield from self._arrays(double, live, path)
        elif isinstance(double, str) and isinstance(live, str):
            yield from self._strings(double, live, path)
        elif _type(double) != _type(live):
            yield self.difference("type", path, double, live)
        elif not self._match(double, live, path):
            yield self.difference("value", path, double, live)

    def difference(self, kind: Kind, path: str, double: Any, live: Any) -> Difference:
        """Return a difference that shows the names of ids."""
        ours, theirs = self._pairs.shown(double, "double"), self._pairs.shown(live, "live")
        return Difference(kind, path, ours, theirs)

    def only_double(self, path: str, value: Any) -> Difference:
        """Return the difference for a part that only the double has."""
        return Difference("only double", path, double=self._pairs.shown(value, "double"))

    def only_live(self, path: str, value: Any) -> Difference:
        """Return the difference for a part that only the live platform has."""
        return Difference("only live", path, live=self._pairs.shown(value, "live"))

    def _objects(
        self, double: Mapping[str, Any], live: Mapping[str, Any], path: str
    ) -> Iterator[Difference]:
        for name, value in double.items():
            where = path + _step(name)
            if name in live:
                yield from self.compare(value, live[name], where)
            else:
                yield self.only_double(where, value)
        for name, value in live.items():
            if name not in double:
                yield self.only_live(path + _step(name), value)

    def _arrays(self, double: list[Any], live: list[Any], path: str) -> Iterator[Difference]:
        """Compare arrays; if their lengths differ, match the elements that look alike."""
        if double and live and self._fields.kind(path) == "traceback":
            return
        for start, end, live_start, live_end in _alignment(double, live):
            both = min(end - start, live_end - live_start)
            for offset in range(both):
                ours, theirs = double[start + offset], live[live_start + offset]
                yield from self.compare(ours, theirs, f"{path}[{start + offset}]")
            for index in range(start + both, end):
                yield self.only_double(f"{path}[{index}]", double[index])
            for index in range(live_start + both, live_end):
                yield self.only_live(f"{path}[{index}]", live[index])

    def _strings(self, double: str, live: str, path: str) -> Iterator[Difference]:
        if self._fields.kind(path) == "json":
            inner, live_inner = parsed(double), parsed(live)
            if inner is not None and live_inner is not None:
                yield from self.compare(inner, live_inner, path)
                return
        if not self._match(double, live, path) and not self._same_text(double, live, path):
            yield self.difference("value", path, double, live)

    def _match(self, double: Any, live: Any, path: str) -> bool:
        """Whether two values are the same, or two ids of the same thing, or two times."""
        noun, live_noun = self._fields.noun_of(double, path), self._fields.noun_of(live, path)
        if noun is None or live_noun is None or noun != live_noun:
            return bool(double == live)
        return noun == TIME or self._pairs.link(str(double), str(live), noun)

    def _same_text(self, double: str, live: str, path: str) -> bool:
        """Whether two texts are the same except for ids and times that match."""
        if self._fields.noun_of(double, path) or self._fields.noun_of(live, path):
            return False
        prose = self._fields.kind(path) == "prose"
        ours = list(pieces(self._pairs.replaced(double, "double"), prose=prose))
        theirs = list(pieces(self._pairs.replaced(live, "live"), prose=prose))
        if len(ours) != len(theirs):
            return False
        for piece, other in zip(ours, theirs, strict=True):
            if piece.noun != other.noun or (piece.noun is None and piece.text != other.text):
                return False
        return all(
            piece.noun in (None, TIME) or self._pairs.link(piece.text, other.text, "id")
            for piece, other in zip(ours, theirs, strict=True)
        )


def _alignment(double: list[Any], live: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    if len(double) == len(live) or len(double) * len(live) > _LARGEST_ALIGNED:
        yield 0, len(double), 0, len(live)
        return
    ours, theirs = [_shape(value) for value in double], [_shape(value) for value in live]
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for _, start, end, live_start, live_end in matcher.get_opcodes():
        yield start, end, live_start, live_end


def _shape(value: Any) -> str:
    """Return the shape by which elements are matched."""
    if isinstance(value, Mapping):
        return (
            "{" + ",".join(f"{name}:{_shape(item)}" for name, item in sorted(value.items())) + "}"
        )
    if isinstance(value, list):
        return f"[{_shape(value[0]) if value else ''}]"
    return _type(value) if is_volatile(value) else repr(value)


def _type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def _step(name: str) -> str:
    return f".{name}" if _WORD.fullmatch(name) else f"[{json.dumps(name)}]"
