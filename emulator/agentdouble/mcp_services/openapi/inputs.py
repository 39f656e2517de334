"""The inputs of an operation, and the schema of arguments that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.mcp_services.openapi.definition import Json, Parameter, Style, Where

SIMPLE = Style("simple")


@dataclass(frozen=True)
class Input:
    """One value that a caller gives: a parameter, a form field of 2.0, or a body."""

    name: str
    where: Where | str  # also "form" and "body"
    schema: Any  # converted
    required: bool
    description: str = ""
    deprecated: bool = False
    style: Style = SIMPLE


def arguments(given: Sequence[Input]) -> list[str]:
    """Return a unique name for each input: its name on the wire, with its place on a clash."""
    common = Counter(one.name for one in given)
    taken: set[str] = {name for name, times in common.items() if times == 1}
    found = []
    for one in given:
        name = one.name if common[one.name] == 1 else _free(f"{one.name}_{one.where}", taken)
        taken.add(name)
        found.append(name)
    return found


def _free(name: str, taken: set[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def schema_of(given: Sequence[Input], names: Sequence[str], definitions: Json) -> Json:
    """Return the schema of the arguments, which allows no other arguments."""
    found: Json = {
        "type": "object",
        "properties": {name: _described(one) for name, one in zip(names, given, strict=True)},
    }
    required = [name for name, one in zip(names, given, strict=True) if one.required]
    if required:
        found["required"] = required
    found["additionalProperties"] = False
    if definitions:
        found["$defs"] = definitions
    return found


def _described(one: Input) -> Any:
    schema: Json = dict(one.schema) if isinstance(one.schema, dict) else {}
    if one.schema is False:
        schema = {"not": {}}
    if one.description:
        schema["description"] = one.description
    if one.deprecated:
        schema["deprecated"] = True
    return schema


def parameters(given: Sequence[Input], names: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters among the inputs."""
    return tuple(
        Parameter(name, one.name, one.where, one.style)
        for name, one in zip(names, given, strict=True)
        if one.where in ("path", "query", "header", "cookie")
    )
