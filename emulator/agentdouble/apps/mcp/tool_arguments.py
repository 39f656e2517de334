"""The parameters of a tool: their schema, and the validation of a call's arguments (MCP-04)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, PydanticUserError, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from agentdouble import ledger, strict_json
from agentdouble.errors import ToolArgumentsError

UNKNOWN_ARGUMENTS = "U-MCP-ARGUMENTS"


class UnshowableParameterError(Exception):
    """A parameter whose type has no JSON Schema; ``parameter`` is its name."""

    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(why)
        self.parameter = parameter


class Schema(GenerateJsonSchema):
    """A schema generator that leaves out defaults which JSON cannot represent."""

    ignored_warning_kinds = frozenset(  # type: ignore[assignment]
        {"skipped-choice", "non-serializable-default"}
    )


class Arguments:
    """The parameters of a tool, as JSON Schema and as a model that validates arguments.

    Parameters of ``apart`` are not among them: callers do not give these.
    """

    def __init__(
        self, tool: str, signature: inspect.Signature, apart: Collection[str] = ()
    ) -> None:
        self._tool = tool
        self._signature = signature
        names = (name for name in signature.parameters if name not in apart)
        self._names = {f"p{at}": name for at, name in enumerate(names)}
        self._known = frozenset(self._names.values())
        fields = {field: _field(signature.parameters[name]) for field, name in self._names.items()}
        try:
            self._model = _model(tool, fields)
            self.schema = self._model.model_json_schema(schema_generator=Schema)
        except PydanticUserError:
            _name_the_unshowable(fields, self._names)
            raise

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the parameters; raise ToolArgumentsError."""
        self._check_names(given)
        try:
            model = self._validate(given)
        except ValidationError as error:
            raise self._error(problems_of(error)) from None
        return {name: getattr(model, field) for field, name in self._names.items()}

    def bind(self, values: dict[str, Any]) -> inspect.BoundArguments:
        """Return arguments for a call of the function."""
        return inspect.BoundArguments(self._signature, values)

    def _check_names(self, given: Mapping[str, Any]) -> None:
        unknown = [name for name in given if name not in self._known]
        if unknown and ledger.choose(UNKNOWN_ARGUMENTS) == "refused":
            takes = ", ".join(self._names.values()) or "nothing"
            raise self._error(f"It takes {takes}, and was given {', '.join(unknown)}")

    def _validate(self, given: Mapping[str, Any]) -> BaseModel:
        try:
            return self._model.model_validate(given)
        except ValidationError as error:
            parsed = _parsed(given, {str(one["loc"][0]) for one in error.errors() if one["loc"]})
            if parsed is None:
                raise
        return self._model.model_validate(parsed)

    def _error(self, why: str) -> ToolArgumentsError:
        message = f"{self._tool} cannot take these arguments. {why}."
        return ToolArgumentsError(message, tool=self._tool)


def problems_of(error: ValidationError) -> str:
    """Return which arguments are wrong, and why."""
    return "; ".join(f"{_path(one['loc'])}: {one['msg']}" for one in error.errors())


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    """Return a field of the model; the parameter is its alias, so any name is possible."""
    default = ... if parameter.default is parameter.empty else parameter.default
    return Annotated[parameter.annotation, Field(alias=parameter.name)], default


def _model(tool: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    make: Callable[..., type[BaseModel]] = create_model
    return make(f"{tool}Arguments", **fields)


def _name_the_unshowable(fields: Mapping[str, Any], names: Mapping[str, str]) -> None:
    for field, definition in fields.items():
        try:
            _model("one", {field: definition}).model_json_schema(schema_generator=Schema)
        except PydanticUserError as error:
            why = error.message.partition("\n")[0]
            raise UnshowableParameterError(names[field], why) from error


def _parsed(given: Mapping[str, Any], wrong: set[str]) -> dict[str, Any] | None:
    """Return the arguments with wrong strings replaced by their JSON values, or None.

    Models sometimes send an object or a list as a string, and the platform's SDK accepts that.
    """
    found = {name: _json(given[name]) for name in wrong if isinstance(given.get(name), str)}
    better = {name: value for name, value in found.items() if isinstance(value, dict | list)}
    return {**given, **better} if better else None


def _json(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except (ValueError, RecursionError):
        return None


def _path(location: tuple[int | str, ...]) -> str:
    first, *rest = location
    return f"{first}" + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in rest)
