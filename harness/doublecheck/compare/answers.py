"""Compare two answers to one call: status, content type, body or events, and how it ended."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from doublecheck.compare.differences import Difference, Explaining, Kind
from doublecheck.compare.fields import TIME, Fields, Pairs, is_volatile, loaded, parsed, pieces
from doublecheck.wire.event_stream import MEDIA_TYPE, data_of

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


UNKNOWNS = "x-agentdouble-unknowns"

_SESSION = "mcp-session-id"
_CUT = "longer than what is compared"
# fields that differ between the events of one text; texts that differ in more are two events
_OF_EACH_EVENT = ("id", "timestamp", "content")


@dataclass(frozen=True)
class Answer:
    """An answer, or the ``error`` if there is none; header names are in lower case.

    With a status, ``error`` says why the answer broke off; ``cut`` means that ``body`` is only its
    beginning.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str | None = None
    cut: bool = False

    @property
    def media_type(self) -> str:
        """The type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of events."""
        return self.media_type == MEDIA_TYPE

    @property
    def relied_on(self) -> frozenset[str]:
        """The unknowns that a double's answer relied on, according to its header."""
        return frozenset(self.headers.get(UNKNOWNS, "").replace(",", " ").split())

    def document(self) -> Any:
        """Return the body as JSON, else as text; None if it is empty."""
        try:
            text = self.body.decode()
        except UnicodeDecodeError:  # two pictures must not be the same by what replaces their bytes
            return f"{len(self.body)} bytes, SHA-256 {hashlib.sha256(self.body).hexdigest()}"
        try:
            return loaded(text) if text else None
        except ValueError:
            return text

    def events(self) -> tuple[Any, ...]:
        """Return the data of its events, as JSON if possible; consecutive texts are joined.

        The places where a text is cut into pieces have no meaning.
        """
        return tuple(_joined([_data(data) for data in data_of(self.body)]))


def differences(
    double: Answer, live: Answer, pairs: Pairs, operation: str = "", request: str = ""
) -> tuple[Difference, ...]:
    """Return the differences between two answers, each with the unknown that explains it.

    ``request`` is the body of the double's request. Ids at the same place are matched on the way.
    """
    answer = double.body.decode("utf-8", "replace")
    explaining = Explaining(operation, double.relied_on, request, answer)
    return explaining.explained(list(_Comparison(pairs, explaining).differences(double, live)))


class _Comparison:
    """The comparison of two answers to one call."""

    def __init__(self, pairs: Pairs, explaining: Explaining) -> None:
        self._pairs = pairs
        self._explaining = explaining
        self._documents = Documents(pairs, Fields(explaining.operation))

    def differences(self, double: Answer, live: Answer) -> Iterator[Difference]:
        if double.status != live.status:  # the bodies of different statuses are not comparable
            ours, theirs = double.status or "no answer", live.status or "no answer"
            yield Difference("value", "status", ours, theirs)
            return
        if double.status is None:
            return
        yield from self._heads(double, live)
        if double.streamed and live.streamed:
            yield from self._streams(double.events(), live.events())
        else:
            yield from self._bodies(double.document(), live.document(), "$")
        if bool(double.error) != bool(live.error):
            yield Difference("value", "end", double.error or "whole", live.error or "whole")
        if double.cut or live.cut:
            ours, theirs = (_CUT if answer.cut else "whole" for answer in (double, live))
            yield Difference("value", "end", ours, theirs)

    def _heads(self, double: Answer, live: Answer) -> Iterator[Difference]:
        if double.media_type != live.media_type and (double.body or live.body):
            yield Difference("value", "content-type", double.media_type, live.media_type)
        ours, theirs = (answer.headers.get(_SESSION, "") for answer in (double, live))
        if ours and theirs and not self._pairs.link(ours, theirs, "MCP session"):
            yield self._documents.difference("value", _SESSION, ours, theirs)

    def _streams(self, double: Sequence[Any], live: Sequence[Any]) -> Iterator[Difference]:
        both = min(len(double), len(live))
        for index in range(both):
            yield from self._bodies(double[index], live[index], f"events[{index}]$")
        for index in range(both, len(double)):
            yield self._documents.only_double(f"events[{index}]", double[index])
        for index in range(both, len(live)):
            yield self._documents.only_live(f"events[{index}]", live[index])

    def _bodies(self, double: Any, live: Any, path: str) -> Iterator[Difference]:
        """Compare two documents, or their contents if an unknown leaves the envelope open."""
        contents = self._explaining.contents(double, live, path)
        if contents is not None:
            yield replace(
                self._documents.difference("type", path, double, live), because=contents.unknown
            )
            double, live, path = contents.double, contents.live, contents.path
        yield from self._documents.compare(double, live, path)


@dataclass(frozen=True)
class _Text:
    text: str


def _data(data: str) -> Any:
    try:
        document = loaded(data)
    except ValueError:
        return _Text(data)
    return document if isinstance(document, (dict, list, str)) else _Text(data)


def _joined(events: Sequence[Any]) -> Iterator[Any]:
    pending: Any = None
    for event in events:
        together = _together(pending, event)
        if together is None:
            if pending is not None:
                yield _plain(pending)
            pending = event
        else:
            pending = together
    if pending is not None:
        yield _plain(pending)


def _together(before: Any, event: Any) -> Any:
    """Merge two events if the second only continues the first's text."""
    if isinstance(before, _Text) and isinstance(event, _Text):
        return _Text(before.text + event.text)
    if isinstance(before, str) and isinstance(event, str):
        return before + event
    if not (_is_increment(before) and _is_increment(event)):
        return None
    if _rest(before) != _rest(event):
        return None
    part, more = before["content"]["parts"][0], event["content"]["parts"][0]
    parts = [{**part, "text": part["text"] + more["text"]}]
    return {**before, "content": {**before["content"], "parts": parts}}


def _is_increment(event: Any) -> bool:
    if not isinstance(event, dict) or not event.get("partial"):
        return False
    content = event.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
        return False
    return isinstance(parts[0].get("text"), str)


def _rest(event: dict[str, Any]) -> Any:
    """Return an increment without its text and the fields that differ in each event."""
    (part,) = event["content"]["parts"]
    content = {**event["content"], "parts": {**part, "text": ""}}
    return {name: value for name, value in event.items() if name not in _OF_EACH_EVENT}, content


def _plain(event: Any) -> Any:
    # a raw text and a JSON string are two ways to send it (U-INVOKE-SSE-CHUNK)
    return [event] if isinstance(event, str) else event.text if isinstance(event, _Text) else event
