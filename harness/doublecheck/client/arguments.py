"""Arguments of the clients' methods: errors that say what a method takes."""

from __future__ import annotations

from doublecheck.errors import ArgumentError


def require(value: object, kind: type, method: str, taken: str) -> None:
    """Raise ArgumentError unless a value is of the kind that a method takes."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{method}() takes {taken}, not {value!r:.80}.")
