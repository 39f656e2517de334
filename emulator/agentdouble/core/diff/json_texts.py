"""JSON inside texts: read it, unless it is nested too deeply to be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_DEEPEST = 100


def loaded(text: str) -> Any:
    """Parse a text as JSON. Raise ValueError if it is not JSON or is nested too deeply."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [document]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in _children(node)]
        if not level:
            return document
    raise ValueError("nested too deeply")


def parsed(text: str) -> Any:
    """Parse a text as a JSON object or array. Return None if it is neither."""
    try:
        return loaded(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()
