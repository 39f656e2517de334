"""Loosen what a saved test asserts, where its calls came to something else when repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import ANY


def loosened(recorded: Any, repeats: Sequence[Any], *, like_recorded: bool) -> Any:
    """Return a recorded value with ANY in place of what changes; ANY if everything does.

    What changes differs between the repeats, or, with ``like_recorded``, between them and the
    recorded value. Without repeats nothing is known to change.
    """
    if not repeats:
        return recorded
    if _all_equal([*repeats, recorded] if like_recorded else repeats):
        return recorded
    inner = _inside(recorded, repeats, like_recorded)
    return ANY if inner is None or _says_nothing(inner) else inner


def in_lines(recorded: Any, repeats: Sequence[Any], *, like_recorded: bool) -> list[Any] | None:
    """Return the lines of a text with ANY for those that change, None if nothing is left."""
    every = [recorded, *repeats]
    if not all(isinstance(one, str) for one in every):
        return None
    lines, *others = [one.splitlines() for one in every]
    found = loosened(lines, others, like_recorded=like_recorded)
    return None if found is ANY else found


def _inside(recorded: Any, repeats: Sequence[Any], like_recorded: bool) -> Any:
    """Return the members of an object or a list, each loosened, None if they do not correspond."""

    def member(key: Any) -> Any:
        inner = [one[key] for one in repeats]
        return loosened(recorded[key], inner, like_recorded=like_recorded)

    if isinstance(recorded, dict) and all(_has_keys_of(recorded, one) for one in repeats):
        return {key: member(key) for key in recorded}
    if isinstance(recorded, list) and all(_has_length_of(recorded, one) for one in repeats):
        return [member(index) for index in range(len(recorded))]
    return None


def _has_keys_of(recorded: dict[str, Any], one: Any) -> bool:
    return isinstance(one, dict) and one.keys() == recorded.keys()


def _has_length_of(recorded: list[Any], one: Any) -> bool:
    return isinstance(one, list) and len(one) == len(recorded)


def _all_equal(values: Sequence[Any]) -> bool:
    return all(one == values[0] for one in values)


def _says_nothing(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is ANY or (bool(inner) and all(one is ANY or _says_nothing(one) for one in inner))
