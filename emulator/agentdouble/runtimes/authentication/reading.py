"""Read JSON as the most lenient of applications might: every spelling, and equal names too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_LONGEST = 1024  # characters of a name


class AmbiguousError(ValueError):
    """The application might read this in another way than its gateway does."""


class Fields(list[tuple[str, Any]]):
    """A JSON object as it was written, pair by pair."""

    def all(self, *names: str) -> list[Any]:
        """Return the values of fields with one of these names, in any spelling; null is none."""
        return [value for name, value in self if plain(name) in names and value is not None]


def read(body: bytes) -> Any:
    """Return what JSON says, its objects as Fields; raise AmbiguousError."""
    try:
        return json.loads(body, object_pairs_hook=Fields)
    except (ValueError, RecursionError):
        raise AmbiguousError("its body is no JSON") from None


def plain(name: str) -> str:
    """Return a name as it reads without its case and its separators."""
    return re.sub(r"[^a-z]", "", name.casefold())


def checked(names: Iterable[Any]) -> Iterator[str]:
    """Yield names that are some; raise AmbiguousError for what cannot be a name."""
    for name in names:
        if not isinstance(name, str):
            raise AmbiguousError("it has a name that is no text")
        if len(name) > _LONGEST:
            raise AmbiguousError(f"it names what has more than {_LONGEST} characters")
        if name:
            yield name
