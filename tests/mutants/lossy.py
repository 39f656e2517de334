"""What platforms lose of texts and other values on their way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Change = Callable[[str], str]
OfValue = Callable[[Any], Any]


def in_texts(value: Any, change: Change) -> Any:
    """Return a JSON value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [in_texts(one, change) for one in value]
    if isinstance(value, dict):
        return {name: in_texts(one, change) for name, one in value.items()}
    return value


def in_values(value: Any, change: OfValue) -> Any:
    """Return a JSON value with everything in it changed that is neither a list nor an object."""
    if isinstance(value, list):
        return [in_values(one, change) for one in value]
    if isinstance(value, dict):
        return {name: in_values(one, change) for name, one in value.items()}
    return change(value)


def each_text(change: Change) -> OfValue:
    """Return a change of every text in a JSON value."""
    return lambda value: in_texts(value, change)


def each_value(change: OfValue) -> OfValue:
    """Return a change of everything in a JSON value that is neither a list nor an object."""
    return lambda value: in_values(value, change)


def without(*names: str) -> OfValue:
    """Return a change that takes fields out of an object."""
    return lambda value: {name: one for name, one in value.items() if name not in names}


def booleans_as_numbers(value: Any) -> Any:
    """Return a JSON value with 1 for true and 0 for false."""
    return in_values(value, lambda one: int(one) if type(one) is bool else one)


def cut(length: int) -> Change:
    """Return a change that keeps only so many characters."""
    return lambda text: text[:length]


def to_ascii(text: str) -> str:
    """Replace what is not ASCII by question marks."""
    return text.encode("ascii", "replace").decode()


def misread(text: str) -> str:
    """Return a text whose UTF-8 was read as Latin-1."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def without_astral(text: str) -> str:
    """Lose the characters beyond the basic plane, such as emoji."""
    return "".join(one for one in text if ord(one) <= 0xFFFF)


def to_number(text: str) -> Any:
    """Return a number for a text of digits."""
    return int(text) if text.isascii() and text.isdecimal() else text


def compact_json(text: str) -> str:
    """Write a text that is JSON without its spaces."""
    try:
        return json.dumps(json.loads(text), separators=(",", ":"))
    except ValueError:
        return text


def to_one_line(text: str) -> str:
    """Replace line breaks by spaces."""
    return " ".join(text.splitlines())


def first_line(text: str) -> str:
    """Keep only the first line."""
    return text.partition("\n")[0]


def without_controls(text: str) -> str:
    """Lose tabs and other control characters, but no line breaks."""
    return "".join(one for one in text if one >= " " or one == "\n")


def without_nulls(value: Any) -> Any:
    """Lose the fields of objects that are null."""
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return value
