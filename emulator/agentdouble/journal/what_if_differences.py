"""The differences between two answers, without those that every repetition shows."""

from __future__ import annotations

import json
import re
from typing import Any

from agentdouble.core.diff.answers import ComparedAnswer, mismatches
from agentdouble.core.diff.documents import Mismatch
from agentdouble.core.diff.operations import operation
from agentdouble.core.diff.pairs import ComparedRequest, Pairs
from agentdouble.core.redaction import without_secrets
from agentdouble.journal.entries import encodable

LONGEST = 4000  # characters of a value that is shown
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"
    r"|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"
)
_SPAN = re.compile(r"(time|at|_s|_ms|seconds|elapsed|duration|timestamp)$", re.IGNORECASE)


def differences(
    request: ComparedRequest, first: ComparedAnswer, again: ComparedAnswer, other: ComparedAnswer
) -> list[dict[str, Any]]:
    """Return where ``other`` differs from ``first`` but ``again`` does not.

    Each has a ``path``, and the values ``in_force`` and ``other`` if there is one.
    """
    every_time = {(found.kind, found.path) for found in _mismatches(request, first, again)}
    return [
        _row(found)
        for found in _mismatches(request, first, other)
        if (found.kind, found.path) not in every_time and not _is_time(found)
    ]


def _mismatches(
    request: ComparedRequest, first: ComparedAnswer, second: ComparedAnswer
) -> tuple[Mismatch, ...]:
    pairs = Pairs()
    pairs.learn(request, request)
    name = operation(request.method, request.url, request.content)
    return mismatches(first, second, pairs, name)


def _is_time(found: Mismatch) -> bool:
    """Whether the values are times or spans: two of three answers may have equal ones by chance."""
    if found.kind != "value":
        return False
    if isinstance(found.first, str) and isinstance(found.second, str):
        return _TIME.sub("<time>", found.first) == _TIME.sub("<time>", found.second)
    return not isinstance(found.first, bool) and _SPAN.search(found.path) is not None


def _row(found: Mismatch) -> dict[str, Any]:
    row: dict[str, Any] = {"path": encodable(found.path)}
    if found.kind != "only second":
        row["in_force"] = _short(found.first)
    if found.kind != "only first":
        row["other"] = _short(found.second)
    return row


def _short(value: Any) -> Any:
    """Return a value as it is shown: without secrets, and not too long."""
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = encodable(without_secrets(written))
    more = len(text) - LONGEST
    if more > 0:
        return f"{text[:LONGEST]}... ({more} more characters)"
    return value if text == written else text
