"""The name that was probably meant, for messages about names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 100  # characters; comparing longer ones takes long


def nearest(word: object, names: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names that are most like a word, whose case does not matter."""
    folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(word)[:_LONGEST].lower(), folded, most, cutoff)
    return [folded[name] for name in near]


def did_you_mean(word: object, names: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """Return a sentence with the nearest names, after a space; else ``otherwise``, if there is one."""
    near = nearest(word, names, most=most)
    sentence = f"Did you mean {' or '.join(near)}?" if near else otherwise
    return f" {sentence}" if sentence else ""
