"""The display of events: events of agents as a conversation, others unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from doublecheck.notebook.display import a2a
from doublecheck.notebook.display.markup import (
    BAD,
    INFO,
    ODD,
    QUIET,
    Markup,
    box,
    clipped,
    code,
    element,
    folded,
    image_of,
    pre,
    quiet,
    toned,
)
from doublecheck.notebook.display.trees import tree
from doublecheck.notebook_repr import counted
from doublecheck.values.agents import A2aAnswer, AgentEvent, StreamEvent

_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere"
_ARGUMENTS_CHARS = 100
_SHOWN = 500


def event(shown: AgentEvent) -> Markup:
    """Return an event."""
    return box(_turn(shown))


def events(shown: Sequence[AgentEvent]) -> Markup:
    """Return a conversation as HTML; the increments of a text are folded."""
    return box(*lines(shown)) if shown else box(quiet("No events."))


def lines(shown: Sequence[AgentEvent]) -> Iterator[Markup]:
    """Yield the turns of a conversation."""
    for partial, group in groupby(shown, key=_is_increment):
        turns = [*group]
        if partial:
            yield _increments(turns)
        else:
            yield from map(_turn, turns)


def _is_increment(shown: AgentEvent) -> bool:
    only_text = all(set(part) <= {"text", "thought"} for part in shown.parts)
    return shown.partial and shown.error is None and only_text


def _turn(shown: AgentEvent) -> Markup:
    return _row(shown, *_event_parts(shown))


def _increments(several: Sequence[AgentEvent]) -> Markup:
    text = "".join(one.text for one in several)
    summed = element("span", quiet(f"{counted(len(several), 'increment')}: "), clipped(text, 60))
    inner = [element("div", code(json.dumps(one.text, ensure_ascii=False))) for one in several]
    return _row(several[0], folded(summed, *inner))


def _row(shown: AgentEvent, *said: str | None) -> Markup:
    author = shown.author or shown.role or "?"
    tone = BAD if shown.error is not None else INFO if author == "user" else ODD
    who = element(
        "div",
        element("b", toned(author, tone)),
        style="flex:0 0 8em;text-align:right;overflow-wrap:anywhere",
    )
    what = element("div", *said, style="flex:1 1 0;min-width:0")
    return element("div", who, what, style="display:flex;gap:1em;padding:.15em 0")


def _event_parts(shown: AgentEvent) -> Iterator[Markup]:
    for part in shown.parts:
        yield from _part(part)
    if shown.error is not None:
        yield element("div", toned(shown.error, BAD), style=_TEXT)
    changes = (shown.raw.get("actions") or {}).get("stateDelta")
    if changes:
        yield tree(changes, name="state", opened=0)


def _part(part: Mapping[str, Any]) -> Iterator[Markup]:
    if part.get("text"):
        text = clipped(str(part["text"]), whole="event.text")
        yield element("div", quiet(text) if part.get("thought") else text, style=_TEXT)
    if part.get("functionCall") is not None:
        yield _call(part["functionCall"])
    if part.get("functionResponse") is not None:
        answer = part["functionResponse"]
        yield tree(answer.get("response"), name=f"↳ {answer.get('name')}", opened=0)
    if part.get("inlineData") is not None:
        yield _media(part["inlineData"])


def _call(call: Mapping[str, Any]) -> Markup:
    arguments = call.get("args") or {}
    told = ", ".join(f"{name}={_json(value)}" for name, value in arguments.items())
    name = element("b", code(str(call.get("name"))))
    if len(told) <= _ARGUMENTS_CHARS and "\\n" not in told:
        return element("div", toned("→ ", QUIET), name, code(f"({told})"))
    given = [
        element("div", quiet(f"{name}: "), element("div", code(_plain(value)), style=_TEXT))
        for name, value in arguments.items()
    ]
    return folded(element("span", toned("→ ", QUIET), name, code("(…)")), *given, opened=True)


def _media(data: Mapping[str, Any]) -> Markup:
    kind = str(data.get("mimeType"))
    return image_of(kind, str(data.get("data"))) or element("div", quiet(f"[{kind}]"))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(value: Any) -> str:
    return clipped(value if isinstance(value, str) else _json(value), 5000)


def stream_event(shown: StreamEvent) -> Markup:
    """Return an event of a streaming invocation."""
    return box(_collected_part(shown))


def collected(shown: Sequence[Any]) -> Markup:
    """Return the events of a stream; events of agents are shown as a conversation."""
    if shown and all(isinstance(one, AgentEvent) for one in shown):
        return events(shown)
    left_out = len(shown) - _SHOWN
    more = quiet(f"{left_out:,} earlier events are not shown.") if left_out > 0 else None
    return box(more, *map(_collected_part, shown[-_SHOWN:]), None if shown else quiet("No events."))


def _collected_part(one: Any) -> Markup:
    if isinstance(one, A2aAnswer):
        return a2a.part(one)
    if not isinstance(one, StreamEvent):
        return pre(clipped(str(one)))
    if one.error is not None:
        return pre(one.error, tone=BAD)
    try:
        return element("div", tree(json.loads(one.data), opened=0))
    except (ValueError, RecursionError):
        return pre(clipped(one.data))
