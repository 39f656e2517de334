"""Values that change from call to call without a meaning: ids and times, found by their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TIME = "time"

_PATTERNS = (
    # a time in ISO 8601, or in an HTTP header
    (
        r"(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
        r"|\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\b)"
    ),
    r"(?P<uuid>\b(?:[a-z]{1,4}-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)",
    r"(?P<address>\b0x[0-9a-fA-F]{6,16}\b)",
    # s-..., t-...: a short prefix, then a word that is in no language
    r"(?P<prefixed>\b[a-z]{1,4}-(?=[a-zA-Z]*\d)[0-9a-zA-Z]{6,}\b)",
    # long words of letters and digits, including hexadecimal and base64
    r"(?P<token>\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{16,}\b|\b\d{15,}\b)",
    r"(?P<base64>\b(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,})",
)
_VOLATILE = re.compile("|".join(_PATTERNS), re.ASCII)
_PREFIXES = {"s": "session", "t": "tool", "e": "event"}
_ID_KEY = re.compile(r"^(?:(?P<noun>.*?)[_-]?)(?:[iI]d|ID)$")
_DURATION_KEY = re.compile(r"(?:duration|elapsed|latency|uptime)(?:_?m?s)?$", re.IGNORECASE)
_SECONDS = (1_000_000_000, 4_100_000_000)  # from 2001 to 2099
_ID = re.compile(r"(?=\D*\d)\S+")  # a word without a digit is a name that a person gave


@dataclass(frozen=True)
class Piece:
    """A piece of a text; ``noun`` is the kind of id or time, None for ordinary text."""

    text: str
    noun: str | None


def noun_of(value: Any, key: str = "") -> str | None:
    """Return the kind of value under a key: ``time``, the noun of an id, or None.

    The form of the value decides. With a key that ends with ``id``, any word with a digit is an id.
    """
    if isinstance(value, (bool, type(None))):
        return None
    if isinstance(value, (int, float)):
        if _is_time(value) or _DURATION_KEY.search(key):
            return TIME
        return _of_key(key) if isinstance(value, int) and _ID_KEY.match(key) else None
    if not isinstance(value, str):
        return None
    found = _VOLATILE.fullmatch(value)
    if found is not None:
        return _noun(found, key)
    named = _ID_KEY.match(key)
    return _of_key(key) if named is not None and _ID.fullmatch(value) else None


def pieces(text: str) -> Iterator[Piece]:
    """Split a text into ordinary text and the ids and times in it."""
    end = 0
    for found in _VOLATILE.finditer(text):
        if found.start() > end:
            yield Piece(text[end : found.start()], None)
        yield Piece(found[0], _noun(found, ""))
        end = found.end()
    if end < len(text):
        yield Piece(text[end:], None)


def _noun(found: re.Match[str], key: str) -> str:
    if found.lastgroup == "time":
        return TIME
    if found.lastgroup == "prefixed":
        prefix = found[0].partition("-")[0]
        if prefix in _PREFIXES:
            return _PREFIXES[prefix]
    return "address" if found.lastgroup == "address" else _of_key(key)


def _of_key(key: str) -> str:
    named = _ID_KEY.match(key)
    noun = (named["noun"] if named else "") or "id"
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", noun).lower()


def _is_time(number: float) -> bool:
    low, high = _SECONDS
    return low <= number <= high or low * 1000 <= number <= high * 1000
