"""Probes of how long a session lives: what its ExpireAt does, and what comes after."""

from __future__ import annotations

import datetime as dt
from typing import Any

from doublecheck.probes.held import Held
from doublecheck.probes.probe import NotSettledError, probe
from doublecheck.probes.probing import TTL_S, WITHIN_S, Probing, background, inner

_MOMENT_S = 3  # more than the second that a stamp may be cut to
_SHORT_S = 60
_LONG_S = 5 * TTL_S


@probe("U-TTL-EXTENDS", "sandbox", "control_plane", writes=True)
def extends(at: Probing) -> str:
    """Use a session and look whether its end has moved."""
    session = at.begin()
    before = _end(at, session)
    at.patience.wait(_MOMENT_S)
    at.run("1", ttl_s=None).ok()
    return "sliding" if _end(at, session) > before else "absolute"


@probe("U-TTL-REPEATED", "sandbox", "control_plane", writes=True)
def repeated(at: Probing) -> str:
    """Send a longer Ttl for a session that lives; look whether its end has moved that far."""
    session = at.begin()
    before = _end(at, session)
    at.run("1", ttl_s=_LONG_S).ok()
    moved = _end(at, session) - before
    return "renews" if moved > dt.timedelta(seconds=(_LONG_S - TTL_S) / 2) else "ignored"


@probe("U-TTL-PAUSED", "sandbox", "control_plane", writes=True)
def paused(at: Probing) -> str:
    """Pause a session for a moment and look whether its end has moved."""
    session = at.begin()
    before = _end(at, session)
    one = {"ToolId": at.tool_id, "SessionId": session}
    at.act("PauseSession", **one).ok()
    at.patience.wait(_MOMENT_S)
    at.act("ResumeSession", **one).ok()
    return "stops" if _end(at, session) > before else "runs"


@probe("U-TTL-DURING", "sandbox", writes=True, slow_s=_SHORT_S + 10)
def during(at: Probing) -> str:
    """Have code run when the end comes."""
    held = Held(at, at.patience.real_s(_SHORT_S + 5) + WITHIN_S)
    at.run("0", ttl_s=_SHORT_S).ok()
    running = background(lambda: at.run(held.code, ttl_s=None, timeout_s=held.timeout_s))
    held.wait_until_begun()
    at.patience.wait(_SHORT_S + 1)
    held.let_go()
    ended = running.result(held.timeout_s)
    return "finishes" if not ended.error and inner(ended).get("success") else "killed"


@probe("U-TTL-AFTER", "sandbox", writes=True, slow_s=_SHORT_S + 2)
def after(at: Probing) -> str:
    """Call when the end has come."""
    first = at.run("0", ttl_s=_SHORT_S).ok()["SessionId"]
    at.patience.wait(_SHORT_S + 2)
    answer = at.run("0", ttl_s=_SHORT_S)
    if answer.error:
        return "error"
    if answer.ok()["SessionId"] == first:
        raise NotSettledError(f"the instance lives on after its Ttl of {_SHORT_S} s")
    return "new-instance"


def _end(at: Probing, session: str) -> dt.datetime:
    return moment(at.act("GetSession", ToolId=at.tool_id, SessionId=session).ok(), "ExpireAt")


def moment(shown: Any, field: str) -> dt.datetime:
    """Return a time that a session shows; raise NotSettledError if it shows none."""
    try:
        return dt.datetime.fromisoformat(str(shown.get(field)).replace("Z", "+00:00"))
    except ValueError:
        raise NotSettledError(f"the session shows no {field} that can be read") from None
