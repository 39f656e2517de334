"""Read the value of a fact, from a file or from text."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from doublecheck.errors import TargetError
from doublecheck.target.addresses import checked
from doublecheck.target.facts import Fact, Type
from doublecheck.target.surfaces import SURFACES, Surface

Value = str | bool | int | tuple[str, ...] | frozenset[Surface] | Mapping[str, str]

KEYED: tuple[Surface, ...] = ("application", "api_server", "mcp", "a2a")
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_LARGEST = 2**32 - 1
_SHOWN_CHARS = 60
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_value(fact: Fact, value: Any) -> Value:
    """Convert a value to the type of its fact; raise ValueError with the expected form."""
    return _READERS[fact.type](value)


def shown(given: Any) -> str:
    """Return a wrong value for a message: shortened, and without an address that has a user."""
    text = repr(given)
    if "@" in text:
        return f"what stands there ({type(given).__name__}, with a user in it)"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _text(value: Any) -> str:
    """Read text."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("text")
    return value


def _address(value: Any) -> str:
    """Read an http or https address."""
    if not isinstance(value, str):
        raise ValueError("an address as text")
    try:
        return checked(value)
    except TargetError:
        raise ValueError("an address: http://host[:port] or https://host") from None


def _flag(value: Any) -> bool:
    """Read true or false."""
    found = _FLAGS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError("true or false")
    return found


def _count(value: Any) -> int:
    """Read how many of something there are."""
    return _whole(value, 1)


def _number(value: Any) -> int:
    """Read a whole number."""
    return _whole(value, 0)


def _whole(value: Any, least: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
        raise ValueError(f"a whole number from {least} to {_LARGEST}")
    return value


def _kind(value: Any) -> str:
    """Read the kind of a target."""
    if value not in ("double", "live"):
        raise ValueError("double or live")
    return str(value)


def _level(value: Any) -> str:
    """Read which checks are carried out."""
    if value not in ("full", "smoke"):
        raise ValueError("full or smoke")
    return str(value)


def _surfaces(value: Any) -> frozenset[Surface]:
    """Read a list of surfaces, or text with commas between them."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise ValueError(f"a list of surfaces: {', '.join(sorted(SURFACES))}")
    return frozenset(_surface(name) for name in names)


def _surface(name: Any) -> Surface:
    for surface in SURFACES:
        if name == surface:
            return surface
    near = difflib.get_close_matches(str(name), SURFACES, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"surfaces out of {', '.join(sorted(SURFACES))}{hint}")


def _command(value: Any) -> tuple[str, ...]:
    """Read a command: a list of words, or text as for a shell."""
    expected = "a command: text, or a list of words"
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:  # a quotation mark is not closed
        raise ValueError(f"{expected} ({error})") from None
    if not isinstance(words, list | tuple) or not words:
        raise ValueError(expected)
    if not all(isinstance(word, str) and "\0" not in word for word in words):
        raise ValueError(expected)
    return tuple(words)


def _variable(value: Any) -> str:
    """Read the name of an environment variable."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("the name of the environment variable that holds it")
    return value


def _variables(value: Any) -> str | Mapping[str, str]:
    """Read the name of a variable, or a table with one for each surface."""
    if not isinstance(value, dict):
        return _variable(value)
    if not value.keys() <= set(KEYED):
        raise ValueError(f"a variable, or a table with one for some of {', '.join(KEYED)}")
    return {surface: _variable(name) for surface, name in value.items()}


_READERS: Mapping[Type, Callable[[Any], Value]] = {
    "address": _address,
    "command": _command,
    "count": _count,
    "file": _text,
    "flag": _flag,
    "kind": _kind,
    "level": _level,
    "number": _number,
    "secret": _variable,
    "secret_by_surface": _variables,
    "surfaces": _surfaces,
    "text": _text,
}
