"""Bodies that are not what a route expects: bytes that are no JSON, JSON that is something else."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

_LONE = "\ud800"
_DEEP = 50_000


def _of_another_encoding(text: str, chance: random.Random) -> bytes:
    name = chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7"))
    return text.encode(name)


def _truncated(text: str, chance: random.Random) -> bytes:
    return text.encode()[: chance.randrange(len(text) + 1)]


def _flipped(text: str, chance: random.Random) -> bytes:
    found = bytearray(text.encode())
    for _ in range(chance.randint(1, 4)):
        if found:
            found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found)


def _twice(text: str, _chance: random.Random) -> bytes:
    """Every key a second time, with null for its value."""
    document = json.loads(text)
    if not isinstance(document, dict) or not document:
        return text.encode() * 2
    again = ", ".join(f"{json.dumps(key)}: null" for key in document)
    return f"{text[:-1]}, {again}}}".encode()


def _zipped(text: str, _chance: random.Random) -> bytes:
    return gzip.compress(text.encode())


SPOILED: tuple[Callable[[str, random.Random], bytes], ...] = (
    _of_another_encoding,
    _truncated,
    _flipped,
    _twice,
    _zipped,
)

FIXED: tuple[bytes, ...] = (
    b"",
    b" ",
    b"null",
    b"true",
    b"[]",
    b"[[]]",
    b"{}",
    b'""',
    b'"text"',
    b"0",
    b"-0",
    b"1e400",
    b"-1e400",
    b"9" * 5000,
    b"NaN",
    b"Infinity",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe\x00\x00",
    b"\xed\xa0\x80",
    b'"\\ud800"',
    b'{"\\ud800": 1}',
    b"[" * _DEEP,
    b"[" * _DEEP + b"]" * _DEEP,
    b'{"a":' * _DEEP + b"1" + b"}" * _DEEP,
    b"{'a': 1}",
    b'{"a": 1,}',
    b"{} {}",
    b"<?xml version='1.0'?><a/>",
    b"a=1&b=2",
    b"--x\r\n",
)

# what stands in the place of a value; the last are written as they are
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    2**64,
    10**4000,
    1.5,
    1e308,
    -0.0,
    "",
    " ",
    "\0",
    "a\0b",
    "a\r\nb: c",
    _LONE,
    f"a{_LONE}b",
    "x" * 70_000,
    "../../../etc/passwd",
    "/",
    "ü" * 300,
    "🙂",
    "-1",
    "NaN",
    "1e400",
    "\u202e",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": ""},
    {_LONE: _LONE},
    {"$ref": "#"},
    [1, "a", None, {}],
)
LITERALS = ("NaN", "Infinity", "-Infinity", "1e400", "9" * 5000, "1" + "0" * 400 + ".5", "-0")
_MARK = "literal-stands-here"


def malformed(template: Any, chance: random.Random) -> bytes:
    """Return a body made of a good one, or one of the kinds that fit nowhere."""
    kind = chance.randrange(10)
    if kind < 2:
        return chance.choice(FIXED)
    document = copy.deepcopy(template)
    if kind < 4:
        return chance.choice(SPOILED)(json.dumps(document), chance)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        document = _changed(document, chance)
    text = json.dumps(document)
    if kind < 6:
        return text.replace(f'"{_MARK}"', chance.choice(LITERALS)).encode()
    return text.encode()


def _changed(document: Any, chance: random.Random) -> Any:
    """Put something else in one place of a document; take away or add a field."""
    places = list(_places(document))
    if not places or chance.random() < 0.1:
        return chance.choice((*VALUES, [document]))
    holder, key = chance.choice(places)
    what = chance.randrange(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[chance.choice(("", "unknown", _LONE, "__class__", "a.b"))] = _value(chance)
    elif what == 2:
        holder[key] = [holder[key]] if chance.random() < 0.5 else {"value": holder[key]}
    else:
        holder[key] = _value(chance)
    return document


def _value(chance: random.Random) -> Any:
    return _MARK if chance.random() < 0.2 else copy.deepcopy(chance.choice(VALUES))


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return every value of a document by what holds it."""
    if not isinstance(document, (dict, list)):
        return []
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    found = [(document, key) for key in keys]
    return found + [place for key in keys for place in _places(document[key])]
