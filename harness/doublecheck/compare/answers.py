"""Compare two answers to one call: status, content type, body or events, and how they ended."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from doublecheck.compare.differences import Difference, Kind
from doublecheck.compare.explaining import Explaining
from doublecheck.compare.fields import Fields
from doublecheck.compare.pairs import TIME, Pairs, loaded, parsed, pieces
from doublecheck.wire.calls import media_type
from doublecheck.wire.event_stream import MEDIA_TYPE, data_of
from doublecheck.wire.exchanges import Exchange

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

UNKNOWNS = "x-agentdouble-unknowns"

_SESSION = "mcp-session-id"
_CUT = "longer than the compared limit"


class Documents:
    """The comparison of the documents in the answers to one operation.

    Documents come from ``fields.loaded``, which refuses one that is nested too deeply.
    """

    def __init__(self, pairs: Pairs, fields: Fields) -> None:
        self._pairs = pairs
        self._fields = fields

    def compare(self, double: Any, live: Any, path: str = "$") -> Iterator[Difference]:
        """Yield the differences of two documents, in the order of the double's document."""
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
        named = self._pairs.with_names
        return Difference(kind, path, named(double, "double"), named(live, "live"))

    def surplus(
        self, double: Sequence[Any], live: Sequence[Any], path: str
    ) -> Iterator[Difference]:
        """Yield the elements that only the longer of two lists has."""
        common = min(len(double), len(live))
        for index, value in enumerate(double[common:], common):
            yield self.difference("only double", f"{path}[{index}]", value, None)
        for index, value in enumerate(live[common:], common):
            yield self.difference("only live", f"{path}[{index}]", None, value)

    def _objects(
        self, double: Mapping[str, Any], live: Mapping[str, Any], path: str
    ) -> Iterator[Difference]:
        for name, value in double.items():
            where = path + _step(name)
            if name in live:
                yield from self.compare(value, live[name], where)
            else:
                yield self.difference("only double", where, value, None)
        for name, value in live.items():
            if name not in double:
                yield self.difference("only live", path + _step(name), None, value)

    def _arrays(self, double: list[Any], live: list[Any], path: str) -> Iterator[Difference]:
        if double and live and self._fields.kind(path) == "traceback":
            return
        for index, (item, live_item) in enumerate(zip(double, live, strict=False)):
            yield from self.compare(item, live_item, f"{path}[{index}]")
        yield from self.surplus(double, live, path)

    def _strings(self, double: str, live: str, path: str) -> Iterator[Difference]:
        if self._fields.kind(path) == "json":
            inner, live_inner = parsed(double), parsed(live)
            if inner is not None and live_inner is not None:
                yield from self.compare(inner, live_inner, path)
                return
        if not self._match(double, live, path) and not self._same_text(double, live, path):
            yield self.difference("value", path, double, live)

    def _match(self, double: Any, live: Any, path: str) -> bool:
        """Whether two values are equal, two ids of the same thing, or two times."""
        noun, live_noun = self._fields.noun_of(double, path), self._fields.noun_of(live, path)
        if noun is None or live_noun is None or noun != live_noun:
            return bool(double == live)
        return noun == TIME or self._pairs.link(str(double), str(live), noun)

    def _same_text(self, double: str, live: str, path: str) -> bool:
        """Whether two texts are the same except for ids and times that match."""
        if self._fields.noun_of(double, path) or self._fields.noun_of(live, path):
            return False
        prose = self._fields.kind(path) == "prose"
        double_pieces = list(pieces(self._pairs.replaced(double, "double"), prose=prose))
        live_pieces = list(pieces(self._pairs.replaced(live, "live"), prose=prose))
        if len(double_pieces) != len(live_pieces):
            return False
        for first, second in zip(double_pieces, live_pieces, strict=True):
            if first.noun != second.noun or (first.noun is None and first.text != second.text):
                return False
        return all(
            piece.noun in (None, TIME) or self._pairs.link(piece.text, live.text, "id")
            for piece, live in zip(double_pieces, live_pieces, strict=True)
        )


def _type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "boolean" if value is not None else "null"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def _step(name: str) -> str:
    return f".{name}" if _WORD.fullmatch(name) else f"[{json.dumps(name)}]"


def relied_on(exchange: Exchange) -> frozenset[str]:
    """Return the unknowns that a double's answer relied on, according to its header."""
    return frozenset(exchange.headers.get(UNKNOWNS, "").replace(",", " ").split())


def _document(exchange: Exchange) -> Any:
    """Return the body as JSON, or as text; None if it is empty."""
    body = exchange.body
    try:
        text = body.decode()
    except UnicodeDecodeError:  # replacement characters must not make two different images equal
        return f"{len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}"
    try:
        return loaded(text) if text else None
    except ValueError:
        return text


def _events(exchange: Exchange) -> list[Any]:
    """Return the data of the events, as JSON if possible. Consecutive pieces of text are joined.

    Where a text is split into pieces has no meaning.
    """
    events: list[Any] = []
    for (kind, _), group in groupby(map(_piece, data_of(exchange.body)), key=itemgetter(0, 1)):
        values = [value for _, _, value in group]
        if kind == "increments":
            parts = [value["content"]["parts"][0] for value in values]
            parts[0]["text"] = "".join(str(part["text"]) for part in parts)
            values = values[:1]
        events += [{kind: "".join(values)}] if kind in ("text", "JSON string") else values
    return events


def _piece(data: str) -> tuple[str, Any, Any]:
    """Return the kind, the author and the value of an event.

    It is a text, a JSON string, an increment, or JSON.
    """
    try:
        event = loaded(data)
    except ValueError:
        return "text", None, data
    if isinstance(event, str):
        return "JSON string", None, event
    if isinstance(event, dict) and event.get("partial"):
        content = event.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list) and len(parts) == 1 and set(parts[0]) == {"text"}:
            return "increments", event.get("author"), event
    if isinstance(event, (dict, list)):
        return "event", None, event
    return "text", None, data


def differences(
    double: Exchange, live: Exchange, pairs: Pairs, operation: str = ""
) -> tuple[Difference, ...]:
    """Return the differences between two answers, each with the unknown that explains it.

    Ids at the same place are matched in passing.
    """
    request, answer = (
        content.decode("utf-8", "replace") for content in (double.request.content, double.body)
    )
    explaining = Explaining(operation, relied_on(double), request, answer)
    return explaining.explained(list(_Comparison(pairs, explaining).differences(double, live)))


class _Comparison:
    """The comparison of two answers to one call."""

    def __init__(self, pairs: Pairs, explaining: Explaining) -> None:
        self._pairs = pairs
        self._explaining = explaining
        self._documents = Documents(pairs, Fields(explaining.operation))

    def differences(self, double: Exchange, live: Exchange) -> Iterator[Difference]:
        if double.status != live.status:  # the bodies of different statuses are not comparable
            first, second = double.status or "no answer", live.status or "no answer"
            yield Difference("value", "status", first, second)
            return
        if double.status is None:
            return
        kinds = media_type(double), media_type(live)
        if kinds[0] != kinds[1] and (double.body or live.body):
            yield Difference("value", "content-type", *kinds)
        first, second = (answer.headers.get(_SESSION, "") for answer in (double, live))
        if first and second and not self._pairs.link(first, second, "MCP session"):
            yield self._documents.difference("value", _SESSION, first, second)
        if kinds == (MEDIA_TYPE, MEDIA_TYPE):
            yield from self._streams(_events(double), _events(live))
        else:
            yield from self._bodies(_document(double), _document(live), "$")
        if bool(double.error) != bool(live.error):
            yield Difference("value", "end", double.error or "whole", live.error or "whole")
        if double.body_cut or live.body_cut:
            first, second = (_CUT if answer.body_cut else "whole" for answer in (double, live))
            yield Difference("value", "end", first, second)

    def _streams(self, double: Sequence[Any], live: Sequence[Any]) -> Iterator[Difference]:
        for index, (item, live_item) in enumerate(zip(double, live, strict=False)):
            yield from self._bodies(item, live_item, f"events[{index}]$")
        yield from self._documents.surplus(double, live, "events")

    def _bodies(self, double: Any, live: Any, path: str) -> Iterator[Difference]:
        """Compare two documents, or their contents if an unknown leaves the envelope open."""
        contents = self._explaining.contents(double, live, path)
        if contents is not None:
            yield replace(
                self._documents.difference("type", path, double, live), because=contents.unknown
            )
            double, live, path = contents.double, contents.live, contents.path
        yield from self._documents.compare(double, live, path)
