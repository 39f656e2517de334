"""Make untrusted text of a platform safe to show."""

from __future__ import annotations

import re

# characters that control terminals, that HTML does not allow, or that disguise text
_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "·")


def visible(text: str) -> str:
    """Make the control characters of a text visible, including those of writing direction."""
    return _HIDING.sub(_picture, text)


def without_controls(text: str) -> str:
    """Return a text for one line of a terminal, with a dot for each control character."""
    return text.translate(_CONTROLS)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"
