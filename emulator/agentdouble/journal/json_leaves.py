"""The values inside JSON by their paths, including those of JSON inside its strings."""

from __future__ import annotations

import json
from typing import Any

from agentdouble.core import event_stream

_DEEPEST = 100


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
        return [unfolded(data) for data in event_stream.data_of(text.encode())]
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
