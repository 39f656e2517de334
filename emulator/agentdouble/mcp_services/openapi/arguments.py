"""Whether a call's arguments are what a tool's schema says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi.definition import Json, Operation

MOST = 5  # problems that are told at once
_LONGEST = 300  # characters of one


class Arguments:
    """Checks arguments; a tool's validator is made at its first call."""

    def __init__(self) -> None:
        self._validators: dict[str, Any] = {}

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Raise ToolCallError that names each argument, or part of one, that is wrong."""
        validator = self._validators.get(operation.name)
        if validator is None:
            validator = Draft202012Validator(operation.input_schema)
            self._validators[operation.name] = validator
        problems = self._problems(validator, dict(arguments))
        if problems:
            raise ToolCallError(f"The arguments are wrong: {'; '.join(problems)}.")

    def _problems(self, validator: Any, arguments: Json) -> list[str]:
        try:
            return [_problem(one) for one in islice(validator.iter_errors(arguments), MOST)]
        except RecursionError:
            return ["they are nested too deeply"]


def _problem(error: ValidationError) -> str:
    nearest: Any = best_match([error])
    path = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" for key in nearest.absolute_path
    ).lstrip(".")
    message = nearest.message
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}..."
    return f"{path}: {message}" if path else message
