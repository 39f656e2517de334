"""How the events of agents look: what users and agents said and did, one line each."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.display.markup import MARKED, PRE, RED, pre

if TYPE_CHECKING:
    from doublecheck.results import AgentEvent


def render(events: Sequence[AgentEvent]) -> str:
    """Return what users and agents said and did as HTML."""
    return f"<div>{''.join(_event(event) for event in events)}</div>"


def _event(event: AgentEvent) -> str:
    said = [html.escape(event.text)] if event.text else []
    said += [f"calls {html.escape(str(call.get('name')))}" for call in event.function_calls]
    said += [f"answers {html.escape(str(r.get('name')))}" for r in event.function_responses]
    if event.error is not None:
        said.append(html.escape(event.error))
    style = PRE if event.error is None else MARKED.format(colour=RED)
    author = html.escape(event.author or event.role or "?")
    return pre(f"<b>{author}</b> {' '.join(said)}", style)
