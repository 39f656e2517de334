"""Read JSON as RFC 8259 says, without the numbers that Python's json module adds to it.

``json.loads`` accepts ``NaN`` and ``Infinity``, and reads ``1e999`` as infinity. No other program
could read an answer in which such a number is written.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

LARGE = 512 * 1024  # bytes, which take some milliseconds

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.\w]+')
_SUSPECT = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}|\d{300}|\0")


class NoNumberError(json.JSONDecodeError):
    """Text is JSON but for a number that is not finite."""


class _NotFiniteError(ValueError):
    pass


class _Patient(json.JSONDecoder):
    """A decoder in Python; the one in C stops all other threads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


async def read(body: bytes) -> Any:
    """Return the value of a JSON body as ``loads`` does; a large one is read in a thread."""
    return loads(body) if len(body) < LARGE else await asyncio.to_thread(loads, body, patient=True)


def loads(
    text: str | bytes,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    patient: bool = False,
) -> Any:
    """Return the value of JSON text; raise JSONDecodeError, also for numbers that are not finite.

    If ``patient``, other threads run meanwhile, and it takes ten times as long.
    """
    try:
        return json.loads(
            text,
            cls=_Patient if patient else None,
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=object_pairs_hook,
        )
    except _NotFiniteError as error:
        literal = str(error)
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    places = (token.start() for token in _TOKEN.finditer(text) if token[0] == literal)
    place = next(places, text.find(literal))
    is_number = any(character.isdigit() for character in literal)
    reason = "is too large for a number" if is_number else "is not JSON (send null or a string)"
    raise NoNumberError(f"{literal[:40]} {reason}", text, place) from None


def check(body: bytes) -> None:
    """Raise NoNumberError if other code must not parse this body; accept what is not JSON at all."""
    if _SUSPECT.search(body):
        try:
            loads(body)
        except NoNumberError:
            raise
        except (ValueError, RecursionError):
            pass  # the other code refuses it


def _refuse(literal: str) -> NoReturn:
    raise _NotFiniteError(literal)


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise _NotFiniteError(literal)
    return number
