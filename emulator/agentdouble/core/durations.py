"""Durations as people write them: ``90s``, ``30m``, ``1h30m``, ``2d``."""

from __future__ import annotations

import datetime as dt
import re

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.ASCII)
_WHOLE = re.compile(rf"(-?)\s*((?:{_PART.pattern}\s*)+)", re.ASCII)


def parse(text: str) -> dt.timedelta:
    """Return the duration that a text says, below zero after a minus; raise ValueError."""
    whole = _WHOLE.fullmatch(text.strip().lower())
    if whole is None:
        raise ValueError(f"A duration looks like 90s, 30m, 2h or 1h30m, not {text.strip()[:40]!r}.")
    sign, parts = whole[1], _PART.findall(whole[2])
    try:
        duration = sum((_part(*part) for part in parts), dt.timedelta())
    except OverflowError:
        raise ValueError(f"{text.strip()[:40]!r} is too long for the clock.") from None
    return -duration if sign else duration


def total(by: dt.timedelta | str | None, **units: float) -> dt.timedelta:
    """Return the sum of a duration and of units of a timedelta, such as ``minutes=30``.

    Raises ValueError and OverflowError.
    """
    return (parse(by) if isinstance(by, str) else by or dt.timedelta()) + dt.timedelta(**units)


def _part(number: str, unit: str) -> dt.timedelta:
    return dt.timedelta(**{_UNITS[unit]: float(number)})
