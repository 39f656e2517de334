"""The definition of a runtime: its program, its scale and its callers, as a ``[[runtimes]]`` table has it."""

from __future__ import annotations

import datetime as dt
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
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

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import DeclarationError
from agentdouble.runtimes.authentication.authorizers import Authorizer

NAME = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$"
VERSIONS_KEPT = 50
Table = Mapping[str, Any]
Seconds = Annotated[float, Field(gt=0, le=366 * 86_400, allow_inf_nan=False)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_US = ("HOME", "PORT", "TMPDIR")
_LEAST_MEMORY = 64 * 1024 * 1024


class Definition(BaseModel):
    """A version of a runtime, as a ``[[runtimes]]`` table declares it.

    Its instances run in ``directory``: an ``application``, which is ``module:attribute`` or
    ``file.py:attribute``, or a ``command`` that listens on ``$PORT`` of 127.0.0.1; its arguments
    may contain ``$PORT``. ``python`` is the interpreter of an application (for a command it comes
    first on PATH), by default the double's own. With ``sources``, whoever asked for the runtime may
    name only paths below these directories, and nothing that it names makes other paths visible.

    After ``idle_s`` without a request, on the double's clock, instances beyond ``min_instances``
    end; if it is None, the ledger decides (U-SCALE-IDLE). Without an ``authorizer``, every caller
    is admitted. ``memory_limit`` is the memory in bytes that all processes of an instance may use
    together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=NAME)
    application: str | None = Field(None, min_length=1)
    command: tuple[str, ...] = ()
    directory: Path = Field(Path(), validate_default=True)
    python: Path | None = None
    sources: tuple[Path, ...] | None = None
    environment: dict[str, str] = Field(default_factory=dict, repr=False)
    min_instances: int = Field(0, ge=0)
    max_instances: int = Field(4, ge=1, validate_default=True)
    max_concurrency: int = Field(10, ge=1)
    idle_s: Seconds | None = None
    start_timeout_s: Seconds = 120.0
    authorizer: Authorizer | None = None
    memory_limit: int | None = Field(None, ge=_LEAST_MEMORY)

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, command: Any) -> Any:
        return shlex.split(command) if isinstance(command, str) else command

    @field_validator("directory")
    @classmethod
    def _there(cls, directory: Path, info: ValidationInfo) -> Path:
        if not os.path.isdir(directory) and not info.context:  # noqa: PTH112 (takes any text)
            raise _wrong(f"there is no directory {directory}")
        return directory.resolve()

    @field_validator("python")
    @classmethod
    def _interpreter(cls, python: Path | None, info: ValidationInfo) -> Path | None:
        """Check the path without resolving links: a virtual environment's interpreter is a link."""
        if python is None:
            return None
        if not os.path.isfile(python) and not info.context:  # noqa: PTH113 (takes any text)
            raise _wrong(f"there is no interpreter {python}; it is a file such as .venv/bin/python")
        return python.absolute()

    @field_validator("sources")
    @classmethod
    def _followed(cls, sources: tuple[Path, ...] | None) -> tuple[Path, ...] | None:
        return sources and tuple(path.resolve() for path in sources)

    @field_validator("environment")
    @classmethod
    def _variables(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not _VARIABLE.fullmatch(name):
                raise _wrong(f"{name[:100]!r} is not the name of an environment variable")
            if name in _SET_BY_US:
                raise _wrong(f"the double itself sets {name}")
        return environment

    @field_validator("max_instances")
    @classmethod
    def _not_below_the_least(cls, most: int, info: ValidationInfo) -> int:
        if most < info.data.get("min_instances", 0):
            raise _wrong("its max_instances is smaller than its min_instances")
        return most

    @model_validator(mode="after")
    def _sound(self) -> Definition:
        if (self.application is None) == (not self.command):
            raise _wrong(
                "it needs either an application (module:attribute or file.py:attribute) "
                "or a command that listens on $PORT"
            )
        for word in (self.application or "", *self.command, *self.environment.values()):
            _check_text(word)
        return self

    def may_show(self, path: str | Path) -> bool:
        """Return whether the program may make a path visible; links are followed."""
        real = Path(os.path.realpath(path))
        return self.sources is None or any(map(real.is_relative_to, self.sources))

    def table(self) -> dict[str, Any]:
        """Return the keys that are set, JSON-ready and with absolute paths."""
        table = self.model_dump(mode="json", exclude_unset=True)
        return {**table, "directory": str(self.directory)}


@dataclass(frozen=True)
class Version:
    """A definition of a runtime and its time; numbers begin with 1 and are never used twice.

    ``fields`` are those of its request that have no effect, with the platform's names.
    """

    number: int
    definition: Definition
    created_at: dt.datetime
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_all(tables: Sequence[Table], reserved: Collection[str] = ()) -> tuple[Definition, ...]:
    """Return the definitions of the tables.

    Raises DeclarationError, including when a name is used twice or is in ``reserved``.
    """
    names: list[str] = []
    definitions = []
    for index, table in enumerate(tables):
        definition = declare(table, key=f"runtimes.{index}")
        name, key = definition.name, f"runtimes.{index}.name"
        if name in names:
            reason = "another [[runtimes]] table has that name; give it one of its own"
            raise DeclarationError(name, key, reason)
        if name in reserved:
            reason = f"an application of the double itself answers at /runtimes/{name}"
            raise DeclarationError(name, key, reason)
        names.append(name)
        definitions.append(definition)
    return tuple(definitions)


def declare(table: Table, *, key: str = "runtimes", stored: bool = False) -> Definition:
    """Return the definition in the table at ``key``; raise DeclarationError.

    If the table was ``stored`` by an earlier run, its files may be missing: the start of its
    instances reports that.
    """
    try:
        return Definition.model_validate(table, context={"stored": True} if stored else None)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        # a misspelled key before the one that is missing because of it
        first = next((it for it in errors if it["type"] == "extra_forbidden"), errors[0])
        inner = ".".join((key, *map(str, first["loc"])))
        raise DeclarationError(table.get("name"), inner, _reason(first)) from None


def _check_text(value: str) -> None:
    """Raise PydanticCustomError for text that cannot be passed to a process."""
    try:
        if b"\0" in value.encode():
            raise _wrong("its text has a NUL character")
    except UnicodeEncodeError:
        raise _wrong("its text is not valid Unicode") from None


def _reason(error: ErrorDetails) -> str:
    if error["type"] != "extra_forbidden":
        return error["msg"]
    keys = (Authorizer if error["loc"][0] == "authorizer" else Definition).model_fields
    hint = did_you_mean(error["loc"][-1], keys)
    return f"there is no such key.{hint}" if hint else f"it is none of {', '.join(keys)}"


def _wrong(reason: str) -> PydanticCustomError:
    return PydanticCustomError("runtime", "{reason}", {"reason": reason})
