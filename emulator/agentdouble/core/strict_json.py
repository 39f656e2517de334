"""Read JSON that every other program can read, too (RFC 8259, 6 and 8.2; RFC 7493).

``json.loads`` accepts ``NaN`` and ``Infinity``, and reads ``1e999`` as infinity. It also accepts a
lone surrogate (half of a character). UTF-8 cannot represent one, so no answer could repeat the
text. Values that no code reads on the way may contain such text.
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
_ESCAPED = re.compile(
    r"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F]..)", re.DOTALL
)


class NoNumberError(json.JSONDecodeError):
    """The text is JSON except for a number that is not finite."""


class _NotFiniteError(ValueError):
    pass


class _Patient(json.JSONDecoder):
    """A decoder in Python; the one in C stops all other threads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


async def read(body: bytes, *, surrogates: bool = False) -> Any:
    """Return the value of a JSON body as ``loads`` does; a large one is read in a thread."""
    if len(body) < LARGE:
        return loads(body, surrogates=surrogates)
    return await asyncio.to_thread(loads, body, patient=True, surrogates=surrogates)


def loads(
    text: str | bytes,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    patient: bool = False,
    surrogates: bool = False,
) -> Any:
    """Return the value of JSON text; raise JSONDecodeError, even for numbers that are not finite.

    Raises UnicodeDecodeError, too. If ``patient``, it lets other threads run, and takes ten times
    as long. With ``surrogates``, the text may contain escaped lone surrogates; use this only for
    values that are returned unchanged.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    if not surrogates:
        _refuse_lone_surrogates(text)
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
    places = (token.start() for token in _TOKEN.finditer(text) if token[0] == literal)
    place = next(places, text.find(literal))
    is_number = any(character.isdigit() for character in literal)
    reason = "is too large for a number" if is_number else "is not JSON (send null or a string)"
    raise NoNumberError(f"{literal[:40]} {reason}", text, place) from None


def _refuse_lone_surrogates(text: str) -> None:
    if "\\ud" not in text and "\\uD" not in text:
        return
    for escape in _ESCAPED.finditer(text):
        if escape["lone"]:
            reason = f"{escape[0]} is half of a character (a lone surrogate)"
            raise json.JSONDecodeError(reason, text, escape.start())


def _refuse(literal: str) -> NoReturn:
    raise _NotFiniteError(literal)


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise _NotFiniteError(literal)
    return number
