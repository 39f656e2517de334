"""What differs between two answers, where a third shows what differs each time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import NotRequired, TypedDict

from agentdouble.redaction import redact, without_secrets

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
_HEX = re.compile(r"[0-9a-fA-F-]+")
_DIGIT = re.compile(r"\d")
_DEEPEST = 100
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
        is_named = not _IGNORED.match(path) and not _is_filled(path, values[0], three)
        if is_named and not _is_filled(path, values[2], one) and _differs(path, *values):
            found.append(_shown(path, values[0], values[2]))
    return found


def _is_filled(path: str, value: Any, other: Mapping[str, Any]) -> bool:
    """Return whether a value is empty where the other answer has something inside."""
    inside = (f"{path}.", f"{path}[")
    return value in ({}, []) and any(one.startswith(inside) for one in other)


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
    steady, again, changed = (_HEX.sub(_without_number, text) for text in texts)
    return steady == again != changed


def _without_number(found: re.Match[str]) -> str:
    return "#" if _DIGIT.search(found[0]) else found[0]


def _is_same(path: str, one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _TIME.sub("<time>", one) == _TIME.sub("<time>", other)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        # a bool is an int, and true is not 1
        return (type(one) is type(other) and one == other) or bool(_SPAN.search(path))
    return one is other or (type(one) is type(other) and one == other)


def _shown(path: str, one: Any, other: Any) -> Difference:
    shown: Difference = {"path": _printable(path)}
    if one is not _ABSENT:
        shown["in_force"] = _short(path, one)
    if other is not _ABSENT:
        shown["other"] = _short(path, other)
    return shown


def _short(path: str, value: Any) -> Any:
    """Return a value as it is shown: without secrets, and not too long."""
    if not isinstance(value, str):
        return value
    header = path.removeprefix("headers.")
    text = _printable(redact(header, value) if header != path else without_secrets(value))
    more = len(text) - LONGEST
    return f"{text[:LONGEST]}... ({more} more characters)" if more > 0 else text


def _printable(text: str) -> str:
    """Return text that can be encoded, because JSON can contain a lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
        return _inner(_loaded(text))
    except (ValueError, RecursionError):
        return text


def _loaded(text: str) -> Any:
    return json.loads(text, parse_constant=str)  # NaN is no JSON, and could not be answered


def _inner(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("The JSON is too deep to be compared.")
    if isinstance(value, list):
        return [_inner(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {name: _inner(one, depth + 1) for name, one in value.items()}
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return _inner(_loaded(value), depth + 1)
        except (ValueError, RecursionError):
            return value
    return value


def _data(text: str) -> Iterator[str]:
    """Yield the data of each event."""
    for block in re.sub(r"\r\n?", "\n", text).split("\n\n"):
        lines = [line[5:].lstrip() for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines)
