"""What differs between two answers, where a third shows what differs each time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import NotRequired, TypedDict

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
_VARIES = re.compile(r"[0-9a-fA-F-]*\d[0-9a-fA-F-]*")
_ABSENT = object()


class Difference(TypedDict):
    """A place in an answer, and the value that each of the two has there, if it has one."""

    path: str
    in_force: NotRequired[Any]
    other: NotRequired[Any]


def differences(
    first: Mapping[str, Any], again: Mapping[str, Any], other: Mapping[str, Any]
) -> list[Difference]:
    """Return where ``other`` differs from ``first``, and ``again`` does not differ likewise."""
    one, two, three = leaves(first), leaves(again), leaves(other)
    found = []
    for path in [*one, *(path for path in three if path not in one)]:
        values = [leaf.get(path, _ABSENT) for leaf in (one, two, three)]
        if not _IGNORED.match(path) and _differs(path, *values):
            found.append(_shown(path, values[0], values[2]))
    return found


def _differs(path: str, one: Any, two: Any, three: Any) -> bool:
    if _is_same(path, one, three):
        return False
    if one is _ABSENT or three is _ABSENT:
        return (one is _ABSENT) == (two is _ABSENT)
    if _is_same(path, one, two):
        return True
    texts = [one, two, three]
    if not all(isinstance(text, str) for text in texts):
        return len({type(value) for value in texts[:2]}) == 1 and type(three) is not type(one)
    steady, again, changed = (_VARIES.sub("#", text) for text in texts)
    return steady == again != changed


def _is_same(path: str, one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _TIME.sub("<time>", one) == _TIME.sub("<time>", other)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        # a bool is an int, and true is not 1
        return (type(one) is type(other) and one == other) or bool(_SPAN.search(path))
    return one is other or (type(one) is type(other) and one == other)


def _shown(path: str, one: Any, other: Any) -> Difference:
    shown: Difference = {"path": path}
    if one is not _ABSENT:
        shown["in_force"] = _short(one)
    if other is not _ABSENT:
        shown["other"] = _short(other)
    return shown


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}... ({len(value) - LONGEST} more characters)"
    return value


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the values inside a JSON value by their paths; what is empty is one, too."""
    return dict(_leaves(value, path))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from _leaves(one, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for index, one in enumerate(value):
            yield from _leaves(one, f"{path}[{index}]")
    else:
        yield path, value


def unfolded(text: str, content_type: str = "") -> Any:
    """Return what a body says: JSON with the JSON inside its texts, events, or the text itself."""
    if "event-stream" in content_type:
        return [unfolded(data) for data in _data(text)]
    try:
        return _inner(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _inner(value: Any) -> Any:
    if isinstance(value, list):
        return [_inner(one) for one in value]
    if isinstance(value, dict):
        return {name: _inner(one) for name, one in value.items()}
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return _inner(json.loads(value))
        except ValueError:
            return value
    return value


def _data(text: str) -> Iterator[str]:
    """Yield the data of each event."""
    for block in re.split(r"\r?\n\r?\n", text):
        lines = [line[5:].lstrip() for line in block.splitlines() if line.startswith("data:")]
        if lines:
            yield "\n".join(lines)
