"""Short descriptions of values, for the sentences that say what a platform did wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SHOWN_CHARS = 60
BEFORE = 20  # characters before the first difference


def short(value: Any) -> str:
    """Return a value on one line, without its middle if it is long."""
    text = repr(value)
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]} ... {text[-half:]}"


def instead(actual: Any, expected: Any) -> str:
    """Say where two values differ: ``in item 2, 'b' instead of 'c'``."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        return _of_dicts(actual, expected)
    if _is_list(actual) and _is_list(expected):
        return _of_lists(actual, expected)
    if isinstance(actual, str) and isinstance(expected, str):
        return _of_texts(actual, expected)
    return f"{short(actual)} instead of {short(expected)}"


def listed(some: Iterable[Any]) -> str:
    """Return several names or values, the first few of them."""
    texts = [it if isinstance(it, str) else short(it) for it in some]
    more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _of_dicts(actual: dict[Any, Any], expected: dict[Any, Any]) -> str:
    for name, value in expected.items():
        if name not in actual:
            return f"without {short(name)}"
        if repr(actual[name]) != repr(value):
            return f"in {short(name)}, {instead(actual[name], value)}"
    more = [name for name in actual if name not in expected]
    return f"with {listed(more)}" if more else "in another order"


def _of_lists(actual: Any, expected: Any) -> str:
    for number, (one, other) in enumerate(zip(actual, expected, strict=False), 1):
        if repr(one) != repr(other):
            return f"in item {number}, {instead(one, other)}"
    return f"{len(actual)} items instead of {len(expected)}"


def _of_texts(actual: str, expected: str) -> str:
    pairs = enumerate(zip(actual, expected, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(actual), len(expected)))
    if at <= BEFORE:
        return f"{short(actual)} instead of {short(expected)}"
    begin = at - BEFORE
    shown = [short(f"...{text[begin : begin + 2 * BEFORE]}") for text in (actual, expected)]
    return f"from character {at + 1}, {shown[0]} instead of {shown[1]}"
