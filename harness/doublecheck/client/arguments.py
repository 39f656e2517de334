"""Arguments of the clients' methods: errors that say what a method takes."""

from __future__ import annotations

from doublecheck.errors import ArgumentError


def require(value: object, kind: type | tuple[type, ...], method: str, taken: str) -> None:
    """Raise ArgumentError unless a value is of the kind that a method takes."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{method}() takes {taken}, not {value!r:.80}.")


def require_text(value: object, name: str, method: str) -> None:
    """Raise ArgumentError unless the argument of this name is text."""
    cure = ": decode it first" if isinstance(value, bytes | bytearray) else ""
    if not isinstance(value, str):
        raise ArgumentError(f"{method}() takes {name} as text, not {value!r:.80}{cure}.")
