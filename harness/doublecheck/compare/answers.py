"""Compare two answers to one call: status, content type, body or events, and how it ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from doublecheck.compare.differences import Difference
from doublecheck.compare.documents import Documents
from doublecheck.compare.explaining import Explaining
from doublecheck.compare.fields import Fields
from doublecheck.compare.ids import Pairs, loaded
from doublecheck.wire.event_stream import MEDIA_TYPE, data_of

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
