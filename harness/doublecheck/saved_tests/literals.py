"""Values as Python literals: text of other origin is quoted, so that it stays a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import ANY

WIDTH = 96


def literal(value: Any, indent: int = 0, used: int = 0) -> str:
    """Return a JSON value as a Python literal, over several lines if one is too long.

    ``indent`` is the indentation of its first line, and ``used`` the number of characters before
    it.
    """
    written = _flat(value)
    if indent + used + len(written) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return written
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    inner = " " * (indent + 4)
    lines = "".join(f"{inner}{line},\n" for line in _lines(value, indent + 4))
    return f"{opening}\n{lines}{' ' * indent}{closing}"


def _lines(value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            key = f"{_flat(name)}: "
            yield key + literal(one, indent, len(key) + 1)
        return
    for one in value:
        yield literal(one, indent, 1)


def _flat(value: Any) -> str:
    if value is ANY:
        return "ANY"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_flat(name)}: {_flat(one)}" for name, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_flat(one) for one in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _text(text: str) -> str:
    written = ascii(text) if not text.isprintable() else repr(text)
    plain = written.startswith("'") and '"' not in text
    return f'"{written[1:-1]}"' if plain else written
