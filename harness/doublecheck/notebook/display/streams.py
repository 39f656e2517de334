"""How the events of a stream look, whatever they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from doublecheck.notebook.display import a2a, events
from doublecheck.notebook.display.elements import Markup, element
from doublecheck.notebook.display.markup import BAD, box, clipped, pre, quiet
from doublecheck.notebook.display.trees import tree
from doublecheck.results import A2aAnswer, AgentEvent, StreamEvent

_SHOWN = 500


def event(shown: StreamEvent) -> Markup:
    """Return an event of a streaming invocation."""
    return box(_part(shown))


def collected(shown: Sequence[Any]) -> Markup:
    """Return the events of a stream; of agents, they are a conversation."""
    if shown and all(isinstance(one, AgentEvent) for one in shown):
        return events.events(shown)
    left_out = len(shown) - _SHOWN
    more = quiet(f"{left_out:,} earlier events are not shown.") if left_out > 0 else None
    return box(more, *map(_part, shown[-_SHOWN:]), None if shown else quiet("No events."))


def _part(one: Any) -> Markup:
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
