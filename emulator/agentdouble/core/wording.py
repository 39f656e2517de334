"""Words for numbers."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return how many of something there are: ``1 tool``, ``2 tools``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
