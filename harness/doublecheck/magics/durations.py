"""Durations as people write them: 90s, 30m, 2h, 1h30m."""

from __future__ import annotations

import datetime as dt
import re

from doublecheck.magics.messages import refuse

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+", re.ASCII)


def parse_duration(text: str) -> dt.timedelta:
    """Parse a duration; raise UsageError if it is not one."""
    if not _WHOLE.fullmatch(text.strip().lower()):
        refuse(f"A duration is 90s, 30m, 2h or 1h30m, not {text.strip()!r}.")
    try:
        return sum(map(_part, _PART.findall(text.lower())), dt.timedelta(0))
    except OverflowError:
        refuse(f"{text.strip()!r} is longer than a clock can be moved.")


def format_duration(seconds: float) -> str:
    """Format a duration as people write it: ``29m 58s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return " ".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _part(found: tuple[str, str]) -> dt.timedelta:
    number, unit = found
    return dt.timedelta(**{_UNITS[unit]: float(number)})
