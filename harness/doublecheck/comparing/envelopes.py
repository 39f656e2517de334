"""The same content in another envelope, where an unknown leaves the envelope open.

The ledger declares the places of the content in one answer or the other, for example ``$`` and
``$.response``. The envelope is what the unknown explains; the contents are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doublecheck.comparing.explaining import Asked
from doublecheck.comparing.patterns import is_path

_STEP = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\*|\d+)\]")
_ABSENT = object()


@dataclass(frozen=True)
class Opened:
    """The contents of two answers, and the unknown whose envelope one of them has."""

    unknown: str
    path: str
    double: Any
    live: Any


def opened(double: Any, live: Any, path: str, asked: Asked) -> Opened | None:
    """Return the contents of two documents that are in different envelopes, else None."""
    for unknown, effect in asked.effects():
        if not effect.content or not is_path(path, effect.paths):
            continue
        ours, theirs = _place(double, effect.content), _place(live, effect.content)
        if ours is not None and theirs is not None and ours != theirs:
            place = max(ours, theirs, key=len)
            contents = (_at(double, ours), _at(live, theirs))
            return Opened(unknown, path + place.removeprefix("$"), *contents)
    return None


def _place(document: Any, places: Sequence[str]) -> str | None:
    """Return the place of the content, the deepest first: any document has something at ``$``."""
    deepest = sorted(places, key=len, reverse=True)
    return next((one for one in deepest if _at(document, one) is not _ABSENT), None)


def _at(document: Any, place: str) -> Any:
    """Return what a document has at a place; ``[*]`` makes a list of what each element has."""
    return _down(document, list(_STEP.finditer(place)))


def _down(document: Any, steps: list[re.Match[str]]) -> Any:
    if not steps:
        return document
    step, *rest = steps
    if step["name"] is not None:
        found = document.get(step["name"], _ABSENT) if isinstance(document, dict) else _ABSENT
        return found if found is _ABSENT else _down(found, rest)
    if not isinstance(document, list):
        return _ABSENT
    if step["index"] != "*":
        index = int(step["index"])
        return _down(document[index], rest) if index < len(document) else _ABSENT
    each = [_down(one, rest) for one in document]
    return _ABSENT if any(one is _ABSENT for one in each) else each
