"""The check of a call's arguments, which ends early, because schema and arguments are foreign.

A schema can be made to take any time: by references that double at each level, or by a pattern
with which Python's ``re`` never ends. So the check stops after some work, and leaves to the backend
what it has not seen. It also leaves all patterns and comparisons of every item with every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import create

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.openapi.definition import Json, Operation

WORK = 20_000  # a keyword is one unit, and one for each item of its value and of the argument
_PER_UNIT = 100  # characters of an error's message, which quotes the argument
_MOST_PROBLEMS = 5  # problems that one error names
_LONGEST_PROBLEM = 300  # characters of one
_LEFT_OUT = ("pattern", "patternProperties", "unevaluatedProperties", "uniqueItems")

_Keyword = Callable[[Any, Any, Any, Json], Iterator[ValidationError] | None]


class Arguments:
    """Checks arguments; a tool's validator is made at its first call."""

    def __init__(self) -> None:
        self._validators: dict[str, Any] = {}
        self._left = 0
        keywords: Mapping[str, _Keyword] = Draft202012Validator.VALIDATORS
        checked = {
            name: self._counted(keyword)
            for name, keyword in keywords.items()
            if name not in _LEFT_OUT
        }
        checked["additionalProperties"] = self._counted(_additional_properties)
        self._make = create(Draft202012Validator.META_SCHEMA, checked)

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """Raise ToolCallError with each argument, or part of one, that is wrong."""
        validator = self._validators.get(operation.name)
        if validator is None:
            validator = self._validators[operation.name] = self._make(operation.input_schema)
        problems = self._problems(validator, dict(arguments))
        if problems:
            raise ToolCallError(f"The arguments are wrong: {'; '.join(problems)}.")

    def _problems(self, validator: Any, arguments: Json) -> list[str]:
        self._left = WORK
        problems: list[str] = []
        try:
            for error in islice(validator.iter_errors(arguments), _MOST_PROBLEMS):
                problems.append(_problem(error))
        except _EnoughError:
            pass
        except RecursionError:
            return ["they are nested too deeply"]
        return problems

    def _counted(self, keyword: _Keyword) -> _Keyword:
        def check(
            validator: Any, value: Any, instance: Any, schema: Json
        ) -> Iterator[ValidationError]:
            self._spend(1 + _size(value) + _size(instance))
            for error in keyword(validator, value, instance, schema) or ():
                self._spend(len(error.message) // _PER_UNIT)
                yield error

        return check

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise _EnoughError


class _EnoughError(Exception):
    """The check has taken enough work."""


def _size(value: Any) -> int:
    return len(value) if isinstance(value, Sized) and not isinstance(value, str) else 0


def _additional_properties(
    validator: Any, value: Any, instance: Any, schema: Json
) -> Iterator[ValidationError] | None:
    """Check the other properties, unless a pattern may have allowed them."""
    if "patternProperties" in schema:
        return None
    keyword: _Keyword = Draft202012Validator.VALIDATORS["additionalProperties"]
    return keyword(validator, value, instance, schema)


def _problem(error: ValidationError) -> str:
    nearest: Any = best_match([error])
    path = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" for key in nearest.absolute_path
    ).lstrip(".")
    message = nearest.message
    if len(message) > _LONGEST_PROBLEM:
        message = f"{message[:_LONGEST_PROBLEM]}..."
    return f"{path}: {message}" if path else message
