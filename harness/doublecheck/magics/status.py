"""What ``%sandbox`` says of itself: where cells run, and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.magics.durations import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from doublecheck.client.platform import Platform
    from doublecheck.magics.platforms import Platforms
    from doublecheck.results import Session

_MORE = "%sandbox help says what it can do."


def status(platforms: Platforms) -> str:
    """Return where cells run and what there is."""
    current = platforms.known_current()
    if current is None:
        return f"Cells run on a double, which starts with the first of them. {_MORE}"
    lines = [f"Cells run on {current}.", *_doubles(current.platform)]
    others = [f"  {one}" for one in platforms.others(than=current)]
    if others:
        lines += ["There are also (%sandbox use NAME):", *others]
    return "\n".join([*lines, _MORE])


def _doubles(platform: Platform) -> Iterator[str]:
    if not platform.target.admin:
        return
    sessions = ", ".join(map(_session, platform.sessions()))
    yield f"Sessions: {sessions or 'none yet'}."
    armed = platform.faults.plan().faults
    if armed:
        yield f"Faults: {', '.join(fault.described for fault in armed)}."


def _session(session: Session) -> str:
    return f"{session.user_session_id} ({shown(session.remaining_s)} left)"
