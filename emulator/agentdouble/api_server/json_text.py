"""JSON text with the whole range of numbers, and fragments that are JSON already."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONG_NUMBER = re.compile(rb"\d{19}")
Fragment = orjson.Fragment  # finished JSON, which is put into other JSON unchanged


def dumps(value: Any) -> bytes:
    """Return a value as JSON; raise TypeError or ValueError if JSON cannot represent it.

    The standard library writes JSON that orjson refuses: integers beyond 64 bits and lone
    surrogates.
    """
    try:
        # A copy, because orjson's bytes hold the 4 KiB or more that it wrote them into.
        return b"%b" % orjson.dumps(value)
    except TypeError:
        written = json.dumps(value, separators=(",", ":"), allow_nan=False, default=_value_of)
        return written.encode()


def _value_of(value: Any) -> Any:
    """Return the value of a fragment, which the standard library does not know."""
    if isinstance(value, Fragment):
        return loads(orjson.dumps(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def loads(text: bytes) -> Any:
    """Return the value of JSON text.

    orjson reads integers beyond 64 bits as floats, and refuses escaped lone surrogates.
    """
    if _LONG_NUMBER.search(text):
        return json.loads(text)
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)
