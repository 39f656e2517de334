"""Refuse bodies that would stop the event loop, or at which the SDK fails."""

from __future__ import annotations

import json

from a2a.utils.errors import InvalidRequestError

MOST_VALUES = 100_000  # of a body, which the SDK converts in a tenth of a second
VERSION_HEADER = "A2A-Version"


def check_size(value: object) -> None:
    """Raise InvalidRequestError for JSON of so many values that the SDK would stop the event loop."""
    count, ahead = 0, [value]
    while ahead:
        inside = ahead.pop()
        if isinstance(inside, dict | list):
            count += len(inside)
            ahead += inside.values() if isinstance(inside, dict) else inside
        if count > MOST_VALUES:
            raise InvalidRequestError(
                f"The body has more than {MOST_VALUES} values: send large data as text or as a file."
            )


def check_text(body: bytes, value: object) -> None:
    """Raise InvalidRequestError if the value of a JSON body contains a lone surrogate.

    JSON can escape a lone surrogate, but protobuf cannot represent it, and fails if it is in a
    name.
    """
    if b"\\ud" not in body and b"\\uD" not in body:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            "The body has half of a character (a lone surrogate), which is no valid Unicode text."
        ) from None
