"""The differences between two answers; a third shows what differs every time, such as ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentdouble.core.redaction import redact, without_secrets
from agentdouble.journal.entries import encodable

LONGEST = 4000  # characters of a text that is shown
_IGNORED = re.compile(
    r"headers\.(date|server|content-length|connection|transfer-encoding|keep-alive"
    r"|x-agentdouble-.*)$"
)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"
    r"|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"
)
_SPAN = re.compile(r"(time|at|_s|_ms|seconds|elapsed|duration|timestamp)$", re.IGNORECASE)
_DEEPEST = 100
_ABSENT = object()


def differences(
    first: Mapping[str, Any], again: Mapping[str, Any], other: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return where ``other`` differs from ``first`` but ``again`` does not.

    Each has a ``path``, and the values ``in_force`` and ``other`` if there is one.
    """
    in_force, repeated, changed = leaves(first), leaves(again), leaves(other)
    differences = []
    for path in {**in_force, **changed}:
        values = [answer.get(path, _ABSENT) for answer in (in_force, repeated, changed)]
        if not _IGNORED.match(path) and _differs(path, *values):
            values_shown = {"in_force": values[0], "other": values[2]}
            differences.append(
                {
                    "path": encodable(path),
                    **{
                        name: _short(path, value)
                        for name, value in values_shown.items()
                        if value is not _ABSENT
                    },
                }
            )
    return differences


def _differs(path: str, first: Any, again: Any, other: Any) -> bool:
    if type(first) is type(again) is not type(other):  # also if one answer lacks it
        return True
    return _is_same(path, first, again) and not _is_same(path, first, other)


def _is_same(path: str, value: Any, other: Any) -> bool:
    if type(value) is not type(other):  # a bool is an int, and true is not 1
        return False
    if isinstance(value, str):
        return _TIME.sub("<time>", value) == _TIME.sub("<time>", other)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return bool(value == other) or (is_number and _SPAN.search(path) is not None)


def _short(path: str, value: Any) -> Any:
    """Return a value as it is shown: without secrets, and not too long."""
    if not isinstance(value, str):
        return value
    header = path.removeprefix("headers.")
    text = encodable(redact(header, value) if header != path else without_secrets(value))
    more = len(text) - LONGEST
    return f"{text[:LONGEST]}... ({more} more characters)" if more > 0 else text


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the values inside a JSON value by their paths, empty objects and lists included."""
    if not value or not isinstance(value, (dict, list)):
        return {path: value}
    if isinstance(value, list):
        inside = {f"{path}[{index}]": item for index, item in enumerate(value)}
    else:
        inside = {f"{path}.{name}" if path else str(name): item for name, item in value.items()}
    return {at: leaf for name, item in inside.items() for at, leaf in leaves(item, name).items()}


def unfolded(text: str, content_type: str = "") -> Any:
    """Return the content of a body: JSON (with the JSON inside its strings), events, or text."""
    if "event-stream" in content_type:
        return [unfolded(data) for data in _event_data(text)]
    try:
        return _inner(_loaded(text))
    except (ValueError, RecursionError):
        return text


def _loaded(text: str) -> Any:
    return json.loads(text, parse_constant=str)  # NaN is not JSON


def _inner(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("The JSON is too deep to be compared.")
    if isinstance(value, list):
        return [_inner(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {name: _inner(item, depth + 1) for name, item in value.items()}
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return _inner(_loaded(value), depth + 1)
        except (ValueError, RecursionError):
            return value
    return value


def _event_data(text: str) -> Iterator[str]:
    for block in re.sub(r"\r\n?", "\n", text).split("\n\n"):
        lines = [line[5:].lstrip() for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines)
