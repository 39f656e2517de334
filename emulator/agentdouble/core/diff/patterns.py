"""Patterns of operations, of paths in answers and of values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

ACTIONS = "actions"  # the operations of the control plane

_WILDCARDS = {r"\*\*": ".*", r"\[\*\]": r"\[\d+\]", r"\*": r"[^.\[\]]+"}
_WILDCARD = re.compile("|".join(map(re.escape, _WILDCARDS)))


def is_operation(operation: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches an operation. ``actions`` are the control plane's."""
    return any(
        "/" not in operation if pattern == ACTIONS else fnmatchcase(operation, pattern)
        for pattern in patterns
    )


def is_path(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a path: * is a name, [*] an index, ** anything below."""
    return any(_compiled(pattern).fullmatch(path) for pattern in patterns)


def is_text(text: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a text."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def text_of(value: Any) -> str:
    """Return a value as patterns see it: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern)
    return re.compile(_WILDCARD.sub(lambda match: _WILDCARDS[match[0]], escaped), re.DOTALL)
