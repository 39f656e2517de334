"""Compare two JSON documents, in which ids and times may differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentdouble.core.diff.fields import Fields
from agentdouble.core.diff.json_texts import parsed
from agentdouble.core.diff.pairs import TIME, Pairs, pieces

Kind = Literal["value", "type", "only first", "only second"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Mismatch:
    """One place where two answers differ; known ids are shown as references.

    ``path`` is ``status``, ``content-type``, ``mcp-session-id``, ``end``, or a JSON path, which
    begins with ``events[n]`` inside a stream.
    """

    kind: Kind
    path: str
    first: Any = None
    second: Any = None


class Documents:
    """The comparison of the documents in the answers to one operation.

    Documents come from ``json_texts.loaded``, which refuses one that is nested too deeply.
    """

    def __init__(self, pairs: Pairs, fields: Fields) -> None:
        self._pairs = pairs
        self._fields = fields

    def compare(self, first: Any, second: Any, path: str = "$") -> Iterator[Mismatch]:
        """Yield the mismatches of two documents, in the order of the first."""
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from self._objects(first, second, path)
        elif isinstance(first, list) and isinstance(second, list):
            yield from self._arrays(first, second, path)
        elif isinstance(first, str) and isinstance(second, str):
            yield from self._strings(first, second, path)
        elif _type(first) != _type(second):
            yield self.mismatch("type", path, first, second)
        elif not self._match(first, second, path):
            yield self.mismatch("value", path, first, second)

    def mismatch(self, kind: Kind, path: str, first: Any, second: Any) -> Mismatch:
        """Return a mismatch that shows the names of ids."""
        named = self._pairs.with_names
        return Mismatch(kind, path, named(first, "first"), named(second, "second"))

    def surplus(self, first: Sequence[Any], second: Sequence[Any], path: str) -> Iterator[Mismatch]:
        """Yield the elements that only the longer of two lists has."""
        common = min(len(first), len(second))
        for index, value in enumerate(first[common:], common):
            yield self.mismatch("only first", f"{path}[{index}]", value, None)
        for index, value in enumerate(second[common:], common):
            yield self.mismatch("only second", f"{path}[{index}]", None, value)

    def _objects(
        self, first: Mapping[str, Any], second: Mapping[str, Any], path: str
    ) -> Iterator[Mismatch]:
        for name, value in first.items():
            where = path + _step(name)
            if name in second:
                yield from self.compare(value, second[name], where)
            else:
                yield self.mismatch("only first", where, value, None)
        for name, value in second.items():
            if name not in first:
                yield self.mismatch("only second", path + _step(name), None, value)

    def _arrays(self, first: list[Any], second: list[Any], path: str) -> Iterator[Mismatch]:
        if first and second and self._fields.kind(path) == "traceback":
            return
        for index, (item, second_item) in enumerate(zip(first, second, strict=False)):
            yield from self.compare(item, second_item, f"{path}[{index}]")
        yield from self.surplus(first, second, path)

    def _strings(self, first: str, second: str, path: str) -> Iterator[Mismatch]:
        if self._fields.kind(path) == "json":
            inner, second_inner = parsed(first), parsed(second)
            if inner is not None and second_inner is not None:
                yield from self.compare(inner, second_inner, path)
                return
        if not self._match(first, second, path) and not self._same_text(first, second, path):
            yield self.mismatch("value", path, first, second)

    def _match(self, first: Any, second: Any, path: str) -> bool:
        """Whether two values are equal, two ids of the same thing, or two times."""
        noun, second_noun = self._fields.noun_of(first, path), self._fields.noun_of(second, path)
        if noun is None or second_noun is None or noun != second_noun:
            return bool(first == second)
        return noun == TIME or self._pairs.link(str(first), str(second), noun)

    def _same_text(self, first: str, second: str, path: str) -> bool:
        """Whether two texts are the same except for ids and times that match."""
        if self._fields.noun_of(first, path) or self._fields.noun_of(second, path):
            return False
        prose = self._fields.kind(path) == "prose"
        first_pieces = list(pieces(self._pairs.replaced(first, "first"), prose=prose))
        second_pieces = list(pieces(self._pairs.replaced(second, "second"), prose=prose))
        if len(first_pieces) != len(second_pieces):
            return False
        for piece, other in zip(first_pieces, second_pieces, strict=True):
            if piece.noun != other.noun or (piece.noun is None and piece.text != other.text):
                return False
        return all(
            piece.noun in (None, TIME) or self._pairs.link(piece.text, other.text, "id")
            for piece, other in zip(first_pieces, second_pieces, strict=True)
        )


def _type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def _step(name: str) -> str:
    return f".{name}" if _WORD.fullmatch(name) else f"[{json.dumps(name)}]"
