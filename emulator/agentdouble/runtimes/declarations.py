"""Runtimes as they are declared: ``[[runtimes]]`` tables of the settings.

This is the only form of a runtime: one that is created while the double runs is a table, too.

Versions are stored as tables, so a new key works everywhere at once. If a directory has been
removed since a runtime was stored, the double still starts; only that runtime fails to start.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from agentdouble.errors import DeclarationError
from agentdouble.runtimes.authentication.authorizers import AuthorizerTable
from agentdouble.runtimes.definition import NAME, NAME_RULE, Definition, Program, Scaling

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_US = ("HOME", "PORT", "TMPDIR")
_KEPT = "kept"
_LEAST_MEMORY = 64 * 1024 * 1024

Table = Mapping[str, Any]
Seconds = Annotated[float, Field(le=366 * 86_400, allow_inf_nan=False)]


class Declaration(BaseModel):
    """A ``[[runtimes]]`` table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    application: Annotated[str, Field(min_length=1)] | None = None
    command: tuple[str, ...] = ()
    directory: Path = Field(Path(), validate_default=True)
    python: Path | None = None
    sources: tuple[Path, ...] | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    min_instances: int = Field(0, ge=0)
    max_instances: int = Field(4, ge=1, validate_default=True)
    max_concurrency: int = Field(10, ge=1)
    idle_s: Seconds | None = Field(None, gt=0)
    start_timeout_s: Seconds = Field(120.0, gt=0)
    stop_timeout_s: Seconds = Field(5.0, ge=0)
    drain_timeout_s: Seconds = Field(60.0, ge=0)
    queue_timeout_s: Seconds = Field(60.0, gt=0)
    queue_limit: int = Field(1000, ge=1)
    authorizer: AuthorizerTable | None = None
    memory_limit: int | None = None

    @field_validator("name")
    @classmethod
    def _segment(cls, name: str) -> str:
        if re.fullmatch(NAME, name) is None:
            raise _wrong(NAME_RULE)
        return name

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, command: Any) -> Any:
        try:
            return shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            raise _wrong(f"it is no command line: {error}") from None

    @field_validator("directory")
    @classmethod
    def _there(cls, directory: Path, info: ValidationInfo) -> Path:
        if not _answers(directory.is_dir) and not _was_there(info):
            raise _wrong(f"there is no directory {directory}")
        return directory.resolve()

    @field_validator("python")
    @classmethod
    def _interpreter(cls, python: Path | None, info: ValidationInfo) -> Path | None:
        """Check the path without resolving links: a virtual environment's interpreter is a link."""
        if python is None:
            return None
        if not _answers(python.is_file) and not _was_there(info):
            raise _wrong(f"there is no interpreter {python}; it is a file such as .venv/bin/python")
        return python.absolute()

    @field_validator("sources")
    @classmethod
    def _followed(cls, sources: tuple[Path, ...] | None) -> tuple[Path, ...] | None:
        return sources and tuple(path.resolve() for path in sources)

    @field_validator("environment")
    @classmethod
    def _variables(cls, environment: dict[str, str]) -> dict[str, str]:
        for name, value in environment.items():
            if not _VARIABLE.fullmatch(name):
                raise _wrong(f"{name[:100]!r} is no name of an environment variable")
            if name in _SET_BY_US:
                raise _wrong(f"the double itself sets {name}")
            _text(value, f"the value of {name}")
        return environment

    @field_validator("application")
    @classmethod
    def _sendable(cls, application: str | None) -> str | None:
        return application if application is None else _text(application, "it")

    @field_validator("command")
    @classmethod
    def _all_sendable(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_text(word, "it") for word in command)

    @field_validator("max_instances")
    @classmethod
    def _room_for_the_least(cls, most: int, info: ValidationInfo) -> int:
        if most < info.data.get("min_instances", 0):
            raise _wrong("its max_instances is smaller than its min_instances")
        return most

    @field_validator("memory_limit")
    @classmethod
    def _enough(cls, limit: int | None) -> int | None:
        if limit is not None and limit < _LEAST_MEMORY:
            raise _wrong(
                f"an instance needs at least {_LEAST_MEMORY >> 20} MiB ({_LEAST_MEMORY} bytes)"
            )
        return limit

    @model_validator(mode="after")
    def _one_program(self) -> Declaration:
        if (self.application is None) == (not self.command):
            raise _wrong(
                "it needs either an application (module:attribute or file.py:attribute) "
                "or a command that listens on $PORT"
            )
        return self

    def definition(self) -> Definition:
        """Return the definition that the table declares."""
        return Definition(
            self.name,
            Program(self.directory, self.application, self.command, self.python, self.sources),
            self.environment,
            Scaling(
                self.min_instances,
                self.max_instances,
                self.max_concurrency,
                self.idle_s,
                self.start_timeout_s,
                self.stop_timeout_s,
                self.drain_timeout_s,
                self.queue_timeout_s,
                self.queue_limit,
            ),
            None if self.authorizer is None else self.authorizer.authorizer(),
            self.memory_limit,
        )

    def resolved(self) -> dict[str, Any]:
        """Return the keys that were set in the table, JSON-ready and with absolute paths."""
        said = self.model_dump(mode="json", exclude_unset=True)
        return {**said, "directory": str(self.directory)}


def read_all(given: Sequence[Table], taken: Collection[str] = ()) -> tuple[Declaration, ...]:
    """Return the declarations of the tables.

    Raises DeclarationError, also if a name is used twice or is in ``taken``.
    """
    found = [declare(table, key=f"runtimes.{index}") for index, table in enumerate(given)]
    names = [declaration.name for declaration in found]
    for index, name in enumerate(names):
        key = f"runtimes.{index}.name"
        if name in names[:index]:
            reason = "another [[runtimes]] table has that name; give it one of its own"
            raise DeclarationError(name, key, reason)
        if name in taken:
            reason = f"an application of the double itself answers at /runtimes/{name}"
            raise DeclarationError(name, key, reason)
    return tuple(found)


def read(table: Table) -> Definition:
    """Return the definition that a table declares; raise SettingsError."""
    return declare(table).definition()


def declare(table: Table, *, key: str = "runtimes", kept: bool = False) -> Declaration:
    """Check and return the table at ``key``; raise DeclarationError.

    If the table was ``kept`` from an earlier run, its files may be missing: the start of its
    instances reports that.
    """
    try:
        return Declaration.model_validate(table, context={_KEPT: kept})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        inner = ".".join((key, *map(str, first["loc"])))
        raise DeclarationError(table.get("name"), inner, _reason(first)) from None


def _text(value: str, what: str) -> str:
    """Return the value if a process can be given it; raise PydanticCustomError if not."""
    if "\0" in value:
        raise _wrong(f"{what} has a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(f"{what} is no valid Unicode text") from None
    return value


def _answers(is_there: Callable[[], bool]) -> bool:
    try:
        return is_there()
    except (OSError, ValueError):  # a name that is too long, no permission, a NUL
        return False


def _was_there(info: ValidationInfo) -> bool:
    return bool((info.context or {}).get(_KEPT))


def _reason(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "it is not there, and must be"
    if error["type"] != "extra_forbidden":
        return error["msg"]
    of_authorizer = error["loc"][0] == "authorizer"
    known = (AuthorizerTable if of_authorizer else Declaration).model_fields
    near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
    if near:
        return f"nobody knows it. Did you mean {near[0]}?"
    table = "An authorizer" if of_authorizer else "A [[runtimes]] table"
    return f"nobody knows it. {table} has {', '.join(known)}"


def _wrong(reason: str) -> PydanticCustomError:
    return PydanticCustomError("runtime", "{reason}", {"reason": reason})
