"""Compare two answers to one call: status, content type, then body or events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from doublecheck.comparing.differences import Difference
from doublecheck.comparing.explaining import explained
from doublecheck.comparing.references import Pairs, loaded
from doublecheck.comparing.structure import compare, shown

_EVENT_STREAM = "text/event-stream"
_UNKNOWNS = "x-agentdouble-unknowns"


@dataclass(frozen=True)
class Answer:
    """An answer, or the ``error`` if there is none; header names are in lower case.

    ``unknowns`` are those that a double relied on, if more are known than its header names.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str | None = None
    unknowns: frozenset[str] = frozenset()

    @property
    def media_type(self) -> str:
        """The type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of events."""
        return self.media_type == _EVENT_STREAM

    @property
    def relied_on(self) -> frozenset[str]:
        """The unknowns that a double's answer relied on, according to its header."""
        named = self.headers.get(_UNKNOWNS, "").split(",")
        return self.unknowns | {one.strip() for one in named if one.strip()}

    def document(self) -> Any:
        """Return the body as JSON, else as text; None if it is empty."""
        text = self.body.decode("utf-8", "replace")
        try:
            return loaded(text) if text else None
        except ValueError:
            return text

    def events(self) -> tuple[Any, ...]:
        """Return the data of its events, as JSON if possible; consecutive texts are joined.

        The places where a text is cut into pieces have no meaning.
        """
        return tuple(_joined([_data(one) for one in _event_data(self.body)]))


def differences(double: Answer, live: Answer, pairs: Pairs) -> tuple[Difference, ...]:
    """Return the differences between two answers, each with the unknown that explains it.

    Ids at the same place are paired in the process.
    """
    return tuple(explained(_found(double, live, pairs), double.relied_on))


def _found(double: Answer, live: Answer, pairs: Pairs) -> Iterator[Difference]:
    if double.status is None or live.status is None:
        if double.status != live.status:
            ours, theirs = double.status or "no answer", live.status or "no answer"
            yield Difference("value", "status", ours, theirs)
        return
    if double.status != live.status:  # the bodies of different statuses are not comparable
        yield Difference("value", "status", double.status, live.status)
        return
    if double.media_type != live.media_type and (double.body or live.body):
        yield Difference("value", "content-type", double.media_type, live.media_type)
    if double.streamed and live.streamed:
        yield from _streams(double.events(), live.events(), pairs)
    else:
        yield from compare(double.document(), live.document(), pairs)


def _streams(double: Sequence[Any], live: Sequence[Any], pairs: Pairs) -> Iterator[Difference]:
    for index, (one, other) in enumerate(zip(double, live)):  # noqa: B905 (what is over, below)
        yield from compare(one, other, pairs, f"events[{index}]$")
    for index in range(len(live), len(double)):
        event = shown(double[index], pairs, "double")
        yield Difference("only double", f"events[{index}]", double=event)
    for index in range(len(double), len(live)):
        event = shown(live[index], pairs, "live")
        yield Difference("only live", f"events[{index}]", live=event)


def _event_data(body: bytes) -> Iterator[str]:
    """Yield the data of each complete event; comments are skipped."""
    lines: list[str] = []
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for line in text.split("\n"):
        if not line and lines:
            yield "\n".join(lines)
            lines = []
        elif line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))


@dataclass(frozen=True)
class _Text:
    text: str


def _data(data: str) -> Any:
    try:
        found = loaded(data)
    except ValueError:
        return _Text(data)
    return found if isinstance(found, (dict, list, str)) else _Text(data)


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


def _plain(event: Any) -> Any:
    # a raw text and a JSON string are two ways to send it (U-INVOKE-SSE-CHUNK)
    return [event] if isinstance(event, str) else event.text if isinstance(event, _Text) else event
