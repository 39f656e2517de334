"""Patterns of operations, of paths in an answer and of values, as the ledger declares them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

ACTIONS = "actions"
_WILDCARDS = {r"\*\*": ".*", r"\[\*\]": r"\[\d+\]", r"\*": r"[^.\[\]]+"}
_WILDCARD = re.compile("|".join(map(re.escape, _WILDCARDS)))


def is_operation(operation: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches an operation; ``actions`` are the control plane's."""
    return any(
        "/" not in operation if one == ACTIONS else fnmatchcase(operation, one) for one in patterns
    )


def is_path(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches a path: * is a name, [*] an index, ** anything below."""
    return any(_compiled(one).fullmatch(path) for one in patterns)


def is_text(text: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches a text."""
    return any(fnmatchcase(text, one) for one in patterns)


def text_of(value: Any) -> str:
    """Return a value as patterns see it: a text itself, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern)
    return re.compile(_WILDCARD.sub(lambda found: _WILDCARDS[found[0]], escaped), re.DOTALL)
