"""Configuration files: ``[tool.doublecheck]`` of a pyproject.toml, and TOML files by name."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doublecheck.errors import ConfigurationError
from doublecheck.target.config_values import Value, read_value, shown
from doublecheck.target.facts import BY_KEY, BY_NAME

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
    text = _text(path)
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
    return _file(path, _parsed(path, _text(path)), "")


def _text(path: Path) -> str:
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
