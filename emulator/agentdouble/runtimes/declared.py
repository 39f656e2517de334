"""Runtimes as they are declared in a settings file: ``[[runtimes]]`` tables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentdouble.errors import SettingsError
from agentdouble.runtimes.definition import Definition, Program, Scaling

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"


class Table(BaseModel):
    """A ``[[runtimes]]`` table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=NAME)]
    application: str | None = None
    command: str | tuple[str, ...] = ()
    directory: Path = Path()
    python: Path | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    min_instances: int = Field(0, ge=0)
    max_instances: int = Field(4, ge=1)
    max_concurrency: int = Field(10, ge=1)
    idle_s: float | None = Field(None, gt=0)
    start_timeout_s: float = Field(30.0, gt=0)
    stop_timeout_s: float = Field(5.0, ge=0)


def read(table: Mapping[str, Any]) -> Definition:
    """Return what a table declares; raise SettingsError."""
    try:
        found = Table.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(("runtimes", *map(str, first["loc"])))
        message = f"The setting {key} is wrong: {first['msg']}."
        raise SettingsError(message, key=key, source="the settings") from None
    command = shlex.split(found.command) if isinstance(found.command, str) else found.command
    if (found.application is None) == (not command):
        raise SettingsError(
            f"The runtime {found.name!r} needs either an application or a command.",
            key="runtimes",
            source="the settings",
        )
    return Definition(
        found.name,
        Program(found.directory.resolve(), found.application, tuple(command), found.python),
        found.environment,
        Scaling(
            found.min_instances,
            found.max_instances,
            found.max_concurrency,
            found.idle_s,
            found.start_timeout_s,
            found.stop_timeout_s,
        ),
    )
