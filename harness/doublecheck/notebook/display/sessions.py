"""How the living sessions of a double look: how long each has left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.notebook.display.elements import Markup, element, joined
from doublecheck.notebook.display.markup import GOOD, WARNING, box, code, quiet, table, title, toned
from doublecheck.notebook_repr import clock_time, counted

if TYPE_CHECKING:
    from doublecheck.results import Session

_SOON_S = 120.0


def session(shown: Session) -> Markup:
    """Return a session with what is left of its life."""
    return sessions((shown,))


def sessions(shown: Sequence[Session]) -> Markup:
    """Return sessions with what was left of their lives when they were asked for."""
    if not shown:
        return box(quiet("No session is living. The first run_code() makes one."))
    heads = ["session", "remaining", "", "until", "executions"]
    rows = [_row(one) for one in sorted(shown, key=lambda one: one.remaining_s)]
    return box(
        title(counted(len(shown), "session"), quiet("when this was asked for")),
        table(heads, rows, right=["executions"]),
    )


def _row(one: Session) -> list[str | None]:
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
