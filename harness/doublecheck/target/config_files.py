"""Configuration files: ``[tool.doublecheck]`` of a pyproject.toml, and TOML files by name."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target.facts import BY_KEY, BY_NAME, SURFACES, Fact, Surface, Type
from doublecheck.target.target import checked

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


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SIZE_LIMIT = 1024 * 1024
_NAME_CHARS = 80
RESERVED = ("double", "live")
_OF_A_RUN = ("target", "targets")


@dataclass(frozen=True)
class Table:
    """The keys of a table; ``where`` names the file and the table."""

    where: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class File:
    """A configuration: its own keys, the target it selects, and the targets it defines."""

    own: Table
    chosen: str | None = None
    targets: Mapping[str, Table] = field(default_factory=dict)


def read_project(path: Path) -> File | None:
    """Read ``[tool.doublecheck]``; return None without that table; raise ConfigurationError."""
    if not path.is_file():
        return None
    text = _file_text(path)
    if "doublecheck" not in text:  # the common case; parsing takes some time
        return None
    document = _parsed(path, text).get("tool", {})
    if not isinstance(document, dict) or "doublecheck" not in document:
        return None
    return _file(path, document["doublecheck"], "tool.doublecheck")


def nearest_project(folder: Path | None = None) -> Path | None:
    """Return the nearest pyproject.toml of a folder, by default the current one, or its parents."""
    here = (folder or Path.cwd()).absolute()
    found = (one / "pyproject.toml" for one in (here, *here.parents))
    return next((path for path in found if path.is_file()), None)


def read(path: Path) -> File:
    """Read a configuration file; raise ConfigurationError."""
    return _file(path, _parsed(path, _file_text(path)), "")


def _file_text(path: Path) -> str:
    if path.is_fifo():  # reading it may block forever
        raise ConfigurationError(f"{path} is no file but a pipe.", source=str(path))
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise ConfigurationError(f"{path}: larger than {SIZE_LIMIT} bytes.", source=str(path))
        return content.decode("utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{path} cannot be read: {reason}.", source=str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is not TOML, which is UTF-8: byte {error.start} is not.", source=str(path)
        ) from None


def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.", source=str(path)) from None
    except RecursionError:
        raise ConfigurationError(f"{path} is nested too deeply.", source=str(path)) from None


def _file(path: Path, document: Any, below: str) -> File:
    own = _entries(path, below, document)
    chosen = own.pop("target", None)
    if chosen is not None and not isinstance(chosen, str):
        raise _wrong(path, below, "target", "the name of a target", chosen)
    named = _entries(path, _joined(below, "targets"), own.pop("targets", {}))
    return File(
        _table(path, below, own, further=_OF_A_RUN),
        chosen,
        {name: _target(path, below, name, entries) for name, entries in named.items()},
    )


def _target(path: Path, below: str, name: str, entries: Any) -> Table:
    where = _joined(below, f"targets.{name}")
    if name in RESERVED:
        raise ConfigurationError(
            f"{_where(path, where)}: the name {name} is taken. What is said of it without a name "
            f"of its own stands in {_where(path, below)}.",
            source=str(path),
            key=name,
        )
    return _table(path, where, _entries(path, where, entries))


def _entries(path: Path, below: str, entries: Any) -> dict[str, Any]:
    if not isinstance(entries, dict):
        raise _wrong(path, "", below, "a table", entries)
    return dict(entries)


def _table(
    path: Path, below: str, entries: Mapping[str, Any], further: Collection[str] = ()
) -> Table:
    values = {key: _value(path, below, key, given, further) for key, given in entries.items()}
    for key, value in values.items():
        if BY_KEY[key].type == "file":
            values[key] = str(path.parent / str(value))
    return Table(_where(path, below), values)


def _value(path: Path, below: str, name: str, given: Any, further: Collection[str]) -> Value:
    fact = BY_KEY.get(name)
    if name in BY_NAME and BY_NAME[name].secret:
        raise ConfigurationError(
            f"{_where(path, below)}: {name} does not belong in a file, which others read. Put it "
            f'in an environment variable and name that one here: {name}_env = "THE_VARIABLE".',
            source=str(path),
            key=name,
        )
    if fact is None:
        raise _unknown(path, below, name, further)
    try:
        return read_value(fact, given)
    except ValueError as error:
        # the secret itself may have been written where the name of its variable belongs
        told = type(given).__name__ if fact.secret else given
        raise _wrong(path, below, name, str(error), told) from None


def _unknown(path: Path, below: str, name: str, further: Collection[str]) -> ConfigurationError:
    near = difflib.get_close_matches(name, [*BY_KEY, *further], n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join([*BY_KEY, *further])}."
    return ConfigurationError(
        f"{_where(path, below)}: there is no key {name[:_NAME_CHARS]}. {hint}",
        source=str(path),
        key=name,
    )


def _wrong(path: Path, below: str, name: str, expected: str, given: Any) -> ConfigurationError:
    return ConfigurationError(
        f"{_where(path, below)}: {name} must be {expected}, not {shown(given)}.",
        source=str(path),
        key=name,
    )


def _where(path: Path, below: str) -> str:
    return f"{path} [{below[:_NAME_CHARS]}]" if below else str(path)


def _joined(below: str, name: str) -> str:
    return f"{below}.{name}" if below else name
