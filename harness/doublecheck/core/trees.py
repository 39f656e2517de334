"""Trees of JSON values as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from doublecheck.core.notebook_repr import counted

if TYPE_CHECKING:
    Attribute = str | bool | None
from doublecheck.core.markup import (
    GOOD,
    INFO,
    Markup,
    clipped,
    code,
    element,
    folded,
    pre,
    quiet,
    toned,
)

_ON_A_LINE, _OF_A_BRANCH, _DEEPEST, _OF_A_TEXT = 70, 200, 30, 2000


def tree(value: Any, *, name: str | None = None, opened: int = 1, depth: int = 0) -> Markup:
    """Return a tree of a JSON value.

    ``opened`` is the number of levels that are initially visible.
    """
    head = None if name is None else quiet(f"{name}: ")
    embedded = _embedded_json(value) if depth <= _DEEPEST else None
    if embedded is not None:
        inner = tree(embedded, opened=opened, depth=depth + 1)
        return folded(element("span", head, quiet("JSON in a string")), inner, opened=opened > 0)
    if isinstance(value, str) and "\n" in value.strip():
        return element("div", head, pre(clipped(value, _OF_A_TEXT)))
    line = _line(value)
    if line is not None or depth > _DEEPEST:
        return element("div", head, _leaf(value, line or "..."))
    branches = [
        tree(child, name=key, opened=opened - 1, depth=depth + 1) for key, child in _branches(value)
    ]
    more = len(value) - len(branches)
    summed = element("span", head, quiet(_counted(value)))
    return folded(summed, *branches, quiet(f"… {more:,} more") if more else None, opened=opened > 0)


def _embedded_json(value: Any) -> Any:
    """Parse a long string as JSON. Return None if it is not JSON."""
    if not (_is_long(value) and isinstance(value, str) and value[0] in "{["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _line(value: Any) -> str | None:
    """Return a value as one line of JSON, or None if it is too long."""
    if isinstance(value, str):
        return json.dumps(clipped(value, _OF_A_TEXT), ensure_ascii=False)
    if isinstance(value, (Mapping, list, tuple)) and len(value) > _ON_A_LINE:
        return None
    if isinstance(value, (Mapping, list, tuple)) and any(_is_long(item) for item in _values(value)):
        return None
    try:
        line = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return None
    return line if len(line) <= _ON_A_LINE or not isinstance(value, (Mapping, list)) else None


def _is_long(value: Any) -> bool:
    return isinstance(value, (str, Mapping, list, tuple)) and len(value) > _ON_A_LINE


def _values(value: Any) -> Any:
    return value.values() if isinstance(value, Mapping) else value


def _leaf(value: Any, line: str) -> Markup:
    if isinstance(value, str):
        return toned(code(line), GOOD)
    return toned(code(line), INFO) if isinstance(value, (int, float)) else code(line)


def _branches(value: Any) -> Iterator[tuple[str, Any]]:
    named = value.items() if isinstance(value, Mapping) else enumerate(value)
    for (key, item), _ in zip(named, range(_OF_A_BRANCH), strict=False):
        yield str(key), item


def _counted(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{counted(len(value), 'key')}}}"
    return f"[{counted(len(value), 'item')}]"
