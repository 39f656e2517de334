"""The table ``[tool.doublecheck]`` of a pyproject.toml, and the values of facts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentdouble.core.suggestions import did_you_mean, nearest
from doublecheck.errors import ConfigurationError, TargetError
from doublecheck.target.fact import Fact
from doublecheck.target.facts import BY_KEY, BY_NAME, SURFACES, Surface
from doublecheck.target.target import checked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = str | bool | int | frozenset[Surface] | Mapping[str, str]

KEYED: tuple[Surface, ...] = ("application", "api_server", "mcp", "a2a")
RESERVED = ("double", "live")
LEVELS = ("full", "quick", "smoke")
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_LARGEST = 2**32 - 1
_SHOWN_CHARS = 60
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Table:
    """The keys of a table. ``where`` names the file and the table."""

    where: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class File:
    """A configuration: the target that it selects, and the targets that it defines."""

    where: str
    selected: str | None = None
    targets: Mapping[str, Table] = field(default_factory=dict)


def read_project(path: Path) -> File | None:
    """Read ``[tool.doublecheck]``. Return None without that table. Raise ConfigurationError."""
    if not path.is_file():
        return None
    try:
        text = path.read_text("utf-8")
        if "doublecheck" not in text:  # the common case; parsing takes some time
            return None
        document = tomllib.loads(text).get("tool", {}).get("doublecheck")
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.", source=str(path)) from None
    if document is None:
        return None
    where = f"{path} [tool.doublecheck"
    keys = {"target", "targets"}
    if not isinstance(document, dict) or not document.keys() <= keys:
        raise ConfigurationError(
            f"{where}] has two keys: target, the name of a target, and targets, with a table "
            "for each target: [tool.doublecheck.targets.NAME].",
            source=str(path),
        )
    targets = document.get("targets", {})
    return File(
        f"{where}]",
        document.get("target"),
        {name: _table(path, f"{where}.targets.{name}]", targets[name]) for name in targets},
    )


def nearest_project() -> Path | None:
    """Return the nearest pyproject.toml in the current folder or its parents."""
    start = Path.cwd()
    paths = (parent / "pyproject.toml" for parent in (start, *start.parents))
    return next((path for path in paths if path.is_file()), None)


def read_value(fact: Fact, value: Any) -> Value:
    """Convert a value to the type of its fact. Raise ValueError with the expected form."""
    return READERS[fact.type](value)


def shown(value: Any) -> str:
    """Return a wrong value for a message: shortened, and without an address that has a user."""
    text = repr(value)
    if "@" in text:
        return f"the given value ({type(value).__name__}, with a user in it)"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _table(path: Path, where: str, entries: Any) -> Table:
    if not isinstance(entries, dict):
        raise ConfigurationError(f"{where} must be a table.", source=str(path))
    values = {key: _value(path, where, key, entry) for key, entry in entries.items()}
    for key, value in values.items():
        if BY_KEY[key].type == "file":
            values[key] = str(path.parent / str(value))
    return Table(where, values)


def _value(path: Path, where: str, name: str, value: Any) -> Value:
    if name in BY_NAME and BY_NAME[name].secret:
        message = (
            f"{where}: {name} is a secret and must not be in a file. Put it in an environment "
            f'variable and name that here: {name}_env = "THE_VARIABLE".'
        )
    elif name not in BY_KEY:
        hint = did_you_mean(name, BY_KEY, f"The keys are {', '.join(BY_KEY)}.")
        message = f"{where}: unknown key {name}.{hint}"
    else:
        fact = BY_KEY[name]
        try:
            return read_value(fact, value)
        except ValueError as error:
            # the secret itself may have been written where the name of its variable belongs
            wrong = type(value).__name__ if fact.secret else value
            message = f"{where}: {name} must be {error}, not {shown(wrong)}."
    raise ConfigurationError(message, source=str(path), key=name)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("text")
    return value


def _address(value: Any) -> str:
    try:
        return checked(_text(value))
    except (TargetError, ValueError):
        raise ValueError("an address: http://host[:port] or https://host") from None


def _flag(value: Any) -> bool:
    flag = _FLAGS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise ValueError("true or false")
    return flag


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST:
            raise ValueError(f"a whole number from {least} to {_LARGEST}")
        return value

    return read


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(" or ".join(words))
        return str(value)

    return read


def _surfaces(value: Any) -> frozenset[Surface]:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    choices = ", ".join(sorted(SURFACES))
    if not isinstance(names, list | tuple) or not names:
        raise ValueError(f"a list of surfaces: {choices}")
    unknown = [str(name) for name in names if name not in SURFACES]
    if unknown:
        near = nearest(unknown[0], SURFACES)
        raise ValueError(
            f"surfaces among {choices}" + (f" (did you mean {near[0]}?)" if near else "")
        )
    return frozenset(surface for surface in SURFACES if surface in names)


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("the name of the environment variable that holds it")
    return value


def _variables(value: Any) -> str | Mapping[str, str]:
    if not isinstance(value, dict):
        return _variable(value)
    if not value.keys() <= set(KEYED):
        raise ValueError(f"a variable, or a table with variables for some of {', '.join(KEYED)}")
    return {surface: _variable(name) for surface, name in value.items()}


READERS: Mapping[str, Callable[[Any], Value]] = {
    "address": _address,
    "count": _whole(1),
    "file": _text,
    "flag": _flag,
    "kind": _one_of(*RESERVED),
    "level": _one_of(*LEVELS),
    "number": _whole(0),
    "secret": _variable,
    "secret_by_surface": _variables,
    "surfaces": _surfaces,
    "text": _text,
}
