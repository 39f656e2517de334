"""JSON as the API server writes it: compact, in UTF-8."""

from __future__ import annotations

import json
from typing import Any

import orjson

Fragment = orjson.Fragment  # JSON that is written already, to be put into other JSON as it is


def dumps(value: Any) -> bytes:
    """Return JSON; raise TypeError or ValueError for what JSON cannot say.

    The standard library writes what orjson refuses and JSON can say: integers beyond 64 bits
    and lone surrogates.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def loads(text: bytes) -> Any:
    """Return what JSON of our own says."""
    try:
        return orjson.loads(text)
    except ValueError:  # an escaped lone surrogate
        return json.loads(text)
