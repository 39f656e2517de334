"""The definition of a runtime: its program, its scale and its versions; and how the settings declare it."""

from __future__ import annotations

import datetime as dt
import difflib
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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

from agentdouble.errors import DeclarationError, RuntimeNameError, UnknownVersionError
from agentdouble.runtimes.authentication.authorizers import Authorizer, AuthorizerTable

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
NAME_RULE = (
    "a name is one segment of a path: up to 100 letters, digits and _ . -, a letter or digit first"
)
VERSIONS_KEPT = 50


def check_name(name: str, taken: Collection[str] = ()) -> None:
    """Raise RuntimeNameError for a name that cannot be used; ``taken`` are applications' names."""
    if re.fullmatch(NAME, name) is None:
        raise RuntimeNameError(name, NAME_RULE)
    if name in taken:
        raise RuntimeNameError(name, f"an application of this process answers at /runtimes/{name}")


@dataclass(frozen=True)
class Program:
    """The program that a runtime's instances run in ``directory``: an application or a command.

    ``application`` is ``module:attribute`` or ``file.py:attribute``. ``command`` is any program
    that listens on ``$PORT`` of 127.0.0.1. Its arguments may contain ``$PORT``: for API-server mode
    ``agentdouble serve --agents DIRECTORY --port $PORT``. ``python`` is the interpreter of either
    (for a command it comes first on PATH), or None for the double's own. A command that begins with
    the path of an interpreter has that one. The interpreter of a virtual environment has the
    libraries of that environment.

    With ``sources``, whoever asked for the program may name only paths below these directories, and
    nothing that it names makes other paths visible.
    """

    directory: Path
    application: str | None = None
    command: tuple[str, ...] = ()
    python: Path | None = None
    sources: tuple[Path, ...] | None = None

    def may_show(self, path: str | Path) -> bool:
        """Return whether the program may make a path visible; links are followed."""
        real = Path(os.path.realpath(path))
        return self.sources is None or any(map(real.is_relative_to, self.sources))


@dataclass(frozen=True)
class Scaling:
    """How many instances there may be, and how many requests an instance gets at a time.

    After ``idle_s`` without a request, on the double's clock, instances beyond ``min_instances``
    end; if it is None, the ledger decides (U-SCALE-IDLE). ``start_timeout_s`` is how long an
    instance may take to become ready, and ``stop_timeout_s`` how long it may take to end when
    asked. ``drain_timeout_s`` is how long the requests of a replaced instance may take. A request
    waits ``queue_timeout_s`` at most for a free instance, and at most ``queue_limit`` requests may
    wait.
    """

    min_instances: int = 0
    max_instances: int = 4
    max_concurrency: int = 10
    idle_s: float | None = None
    start_timeout_s: float = 120.0
    stop_timeout_s: float = 5.0
    drain_timeout_s: float = 60.0
    queue_timeout_s: float = 60.0
    queue_limit: int = 1000


@dataclass(frozen=True)
class Definition:
    """A version of a runtime; its processes get ``environment`` in addition to the system's.

    ``authorizer`` checks the callers; if it is None, every caller is admitted. ``memory_limit`` is
    the memory in bytes that all processes of an instance may use together, or None for no limit.
    """

    name: str
    program: Program
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    scaling: Scaling = Scaling()
    authorizer: Authorizer | None = None
    memory_limit: int | None = None


@dataclass(frozen=True)
class Version:
    """A definition of a runtime and its time; numbers begin with 1 and are never used twice."""

    number: int
    definition: Definition
    created_at: dt.datetime


class Versions:
    """The versions that are kept, oldest first; the version in force is always kept."""

    def __init__(self, first: Version) -> None:
        self._kept = {first.number: first}
        self.in_force = first
        self.released = first.number  # the highest that was ever released

    def all(self) -> tuple[Version, ...]:
        """Return the versions that are kept, the oldest first."""
        return tuple(self._kept.values())

    @property
    def latest(self) -> Version:
        """The newest version."""
        return self._kept[max(self._kept)]

    def find(self, number: int) -> Version:
        """Return the version with this number; raise UnknownVersionError."""
        found = self._kept.get(number)
        if found is None:
            raise UnknownVersionError(self.in_force.definition.name, number, sorted(self._kept))
        return found

    def add(self, definition: Definition, at: dt.datetime) -> Version:
        """Keep a definition as the newest version; drop the oldest if there are too many."""
        version = Version(self.latest.number + 1, definition, at)
        self._kept[version.number] = version
        if len(self._kept) > VERSIONS_KEPT:
            del self._kept[next(n for n in self._kept if n != self.in_force.number)]
        return version

    def bring_in_force(self, version: Version) -> None:
        """Route new requests to a version."""
        self.in_force = version
        self.released = max(self.released, version.number)

    def restore(self, kept: Sequence[Version], in_force: int) -> None:
        """Restore versions that were stored, oldest first."""
        self._kept = {version.number: version for version in kept}
        self.bring_in_force(self.find(in_force))


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
