"""How sessions of API-server mode look."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.notebook.display import events
from doublecheck.notebook.display.elements import Markup
from doublecheck.notebook.display.markup import box, code, quiet, table, title
from doublecheck.notebook.display.trees import tree
from doublecheck.notebook_repr import counted

if TYPE_CHECKING:
    from doublecheck.results import AgentSession


def session(shown: AgentSession) -> Markup:
    """Return a session: whose it is, its state, and its history as a conversation."""
    told = [f"of {shown.user_id} with {shown.app_name}", counted(len(shown.events), "event")]
    return box(
        title("Session", code(shown.id), quiet(", ".join(told))),
        tree(dict(shown.state), name="state") if shown.state else None,
        *events.lines(shown.events),
    )


def sessions(shown: Sequence[AgentSession]) -> Markup:
    """Return the sessions of a user, without their histories."""
    if not shown:
        return box(quiet("No session yet."))
    rows = [
        [code(one.id), one.app_name, one.user_id, _at(one), tree(dict(one.state), opened=0)]
        for one in shown
    ]
    return box(
        title(counted(len(shown), "session")),
        table(["session", "app", "user", "updated", "state"], rows),
    )


def _at(one: AgentSession) -> str:
    if one.last_update_time is None:
        return ""
    try:
        at = dt.datetime.fromtimestamp(one.last_update_time, dt.timezone.utc)
    except (ValueError, OverflowError, OSError, TypeError):  # in other units, or no number
        return str(one.last_update_time)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
