"""Values as Python literals, and calls that have them as arguments.

Text of other origin is quoted, so that it stays a value.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any
from unittest.mock import ANY

WIDTH = 96
INDENT = 4


def literal(value: Any, indent: int = 0, used: int = 0) -> str:
    """Return a JSON value as a Python literal, over several lines if one is too long.

    ``indent`` is the indentation of its first line, and ``used`` the number of characters before
    it.
    """
    written = _flat(value)
    if indent + used + len(written) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return written
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    inner = " " * (indent + INDENT)
    lines = "".join(f"{inner}{line},\n" for line in _lines(value, indent + INDENT))
    return f"{opening}\n{lines}{' ' * indent}{closing}"


def bytes_literal(content: bytes) -> str:
    """Return bytes as a Python literal."""
    written = repr(content)
    plain = written.startswith("b'") and b'"' not in content
    return f'b"{written[2:-1]}"' if plain else written


def call_of(function: str, arguments: Iterable[str]) -> str:
    """Return a call of a function with arguments that are literals."""
    return f"{function}({', '.join(arguments)})"


def keywords(fields: Mapping[str, Any]) -> list[str]:
    """Return fields as keyword arguments."""
    return [f"{name}={literal(value)}" for name, value in fields.items()]


def are_names(fields: Iterable[str], taken: Collection[str]) -> bool:
    """Return whether all fields can be keyword arguments beside those that are taken."""
    return all(
        name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and name not in taken
        for name in fields
    )


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
