"""The results of a tool: their schema, structured content and text (MCP-05)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from agentdouble.apps.mcp.tool_arguments import Schema
from agentdouble.errors import ToolResultError

T = TypeVar("T")

_ROUND = "InputRequiredResult"


@dataclass(frozen=True)
class Result:
    """A result: its texts, and its structured content, if any."""

    texts: tuple[str, ...]
    structured: dict[str, Any] | None


class Results:
    """The results of a tool, converted according to the annotation of its return value.

    A dict, a model, a dataclass or a TypedDict is structured content; a value of another type
    becomes ``{"result": value}``. Without an annotation, a dict is structured content, too.
    """

    def __init__(self, tool: str, annotation: Any) -> None:
        self._tool = tool
        self._adapter: TypeAdapter[Any] | None = None
        self._wrapped = False
        self.schema: dict[str, Any] | None = None
        returned = _without_rounds(annotation)
        if returned not in (inspect.Signature.empty, Any) and not _is_content(returned):
            self._declare(returned)

    def result_of(self, value: Any) -> Result:
        """Return the result for a value; raise ToolResultError if its type is wrong."""
        return self._checked(lambda: Result(tuple(_texts(value)), self._structured(value)))

    def texts_of(self, value: Any) -> list[str]:
        """Return a value as texts, one for each item of a list; raise ToolResultError."""
        return self._checked(lambda: _texts(value))

    def structured_of(self, value: Any) -> dict[str, Any] | None:
        """Return a value as structured content, if it has any; raise ToolResultError."""
        return self._checked(lambda: self._structured(value))

    def _checked(self, make: Callable[[], T]) -> T:
        try:
            return make()
        except ValidationError as error:
            problems = "; ".join(one["msg"] for one in error.errors(include_url=False))
            raise self._error(f"is not what its annotation says: {problems}") from None
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise self._error(f"cannot be sent as JSON: {error}") from None

    def _declare(self, annotation: Any) -> None:
        try:
            adapter = TypeAdapter[Any](annotation)
            schema = _rooted(adapter.json_schema(mode="serialization", schema_generator=Schema))
            if schema.get("type") != "object":
                wrapped = create_model(f"{self._tool}Output", result=(annotation, ...))
                schema = wrapped.model_json_schema(mode="serialization", schema_generator=Schema)
                self._wrapped = True
        except PydanticUserError:  # the type has no schema
            return
        self._adapter, self.schema = adapter, schema

    def _structured(self, value: Any) -> dict[str, Any] | None:
        if self._adapter is None:
            return _JSON.dump_python(value, mode="json") if isinstance(value, dict) else None
        checked = self._adapter.validate_python(value, by_alias=True, by_name=True)
        dumped = self._adapter.dump_python(
            checked, mode="json", by_alias=True, serialize_as_any=True
        )
        return {"result": dumped} if self._wrapped else dumped

    def _error(self, why: str) -> ToolResultError:
        return ToolResultError(f"What {self._tool} returned {why}.", tool=self._tool)


_JSON = TypeAdapter[Any](dict[str, Any])


def _texts(value: Any) -> list[str]:
    """Return a value as texts, one for each item of a list, as the SDK does."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [to_json(value, fallback=str, indent=2, inf_nan_mode="null").decode()]


def _rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is an object; that of a recursive type only refers to a
    definition."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return schema
    definition = schema["$defs"][reference.removeprefix("#/$defs/")]
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def _without_rounds(annotation: Any) -> Any:
    """Return a type without the InputRequiredResult that is returned in its place."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    kept = [one for one in get_args(annotation) if getattr(one, "__name__", "") != _ROUND]
    return Union[tuple(kept)] if kept else annotation  # noqa: UP007 (made at run time)


def _is_content(annotation: Any) -> bool:
    """Return whether a type is one of the protocol, whose values are sent unchanged."""
    arguments = getattr(annotation, "__args__", ())
    module = getattr(annotation, "__module__", "") or ""
    return module.split(".")[0] == "mcp_types" or any(_is_content(one) for one in arguments)
