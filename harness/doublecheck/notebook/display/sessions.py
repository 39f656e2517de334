"""The display of sessions: sandbox sessions with their remaining time, and sessions of agents."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.notebook.display import events
from doublecheck.notebook.display.markup import (
    GOOD,
    WARNING,
    Markup,
    box,
    code,
    element,
    joined,
    quiet,
    table,
    title,
    toned,
)
from doublecheck.notebook.display.trees import tree
from doublecheck.notebook_repr import clock_time, counted

if TYPE_CHECKING:
    from doublecheck.values.agents import AgentSession
    from doublecheck.values.double import Session

_SOON_S = 120.0


def session(shown: Session) -> Markup:
    """Return a session with its remaining time."""
    return sessions((shown,))


def sessions(shown: Sequence[Session]) -> Markup:
    """Return sessions with their remaining times at the moment of the request."""
    if not shown:
        return box(quiet("No session is living. The first run_code() makes one."))
    heads = ["session", "remaining", "", "until", "executions"]
    rows = [_session_row(one) for one in sorted(shown, key=lambda one: one.remaining_s)]
    return box(
        title(counted(len(shown), "session"), quiet("when this was asked for")),
        table(heads, rows, right=["executions"]),
    )


def _session_row(one: Session) -> list[str | None]:
    return [
        joined((element("b", one.user_session_id), element("div", code(one.session_id)))),
        _bar(one),
        toned(clock_time(one.remaining_s), _tone(one)),
        one.deadline.strftime("%H:%M:%S %Z"),
        str(one.executions),
    ]


def _bar(one: Session) -> Markup:
    life_s = (one.deadline - one.created_at).total_seconds()
    share = min(max(one.remaining_s / life_s, 0.0), 1.0) if life_s > 0 else 0.0
    left = element(
        "div", style=f"width:{share:.1%};height:100%;background:{_tone(one)};border-radius:.3em"
    )
    track = "width:7em;height:.6em;margin-top:.45em;background:rgba(128,128,128,.25)"
    return element("div", left, style=f"{track};border-radius:.3em")


def _tone(one: Session) -> str:
    return WARNING if one.remaining_s < _SOON_S else GOOD


def agent_session(shown: AgentSession) -> Markup:
    """Return a session of an agent: its user, its state, and its history as a conversation."""
    told = [f"of {shown.user_id} with {shown.app_name}", counted(len(shown.events), "event")]
    return box(
        title("Session", code(shown.id), quiet(", ".join(told))),
        tree(dict(shown.state), name="state") if shown.state else None,
        *events.lines(shown.events),
    )


def agent_sessions(shown: Sequence[AgentSession]) -> Markup:
    """Return the sessions of a user, without their histories."""
    if not shown:
        return box(quiet("No session yet."))
    rows = [
        [code(one.id), one.app_name, one.user_id, _updated_at(one), tree(dict(one.state), opened=0)]
        for one in shown
    ]
    return box(
        title(counted(len(shown), "session")),
        table(["session", "app", "user", "updated", "state"], rows),
    )


def _updated_at(one: AgentSession) -> str:
    if one.last_update_time is None:
        return ""
    try:
        at = dt.datetime.fromtimestamp(one.last_update_time, dt.timezone.utc)
    except (ValueError, OverflowError, OSError, TypeError):  # other units, or not a number
        return str(one.last_update_time)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
