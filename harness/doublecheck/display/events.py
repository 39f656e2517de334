"""How the events of agents look: what users and agents said and did, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.display.elements import Markup, element
from doublecheck.display.markup import BAD, box, pre

if TYPE_CHECKING:
    from doublecheck.results import AgentEvent


def render(events: Sequence[AgentEvent]) -> Markup:
    """Return what users and agents said and did as HTML."""
    return box(*(_event(event) for event in events))


def _event(event: AgentEvent) -> Markup:
    said = [event.text] if event.text else []
    said += [f"calls {call.get('name')}" for call in event.function_calls]
    said += [f"answers {answer.get('name')}" for answer in event.function_responses]
    if event.error is not None:
        said.append(event.error)
    author = element("b", event.author or event.role or "?")
    return pre(author, f" {' '.join(said)}", tone=None if event.error is None else BAD)
