"""What callers read of an exception of the application."""

from __future__ import annotations


def text_of(error: BaseException) -> str:
    """Return the text of an exception, with its type if the text is empty or only a key."""
    text = str(error)
    if text and not isinstance(error, KeyError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
