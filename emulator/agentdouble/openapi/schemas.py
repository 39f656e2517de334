"""JSON Schema of types, as pydantic makes it: those with a name stand in ``components`` once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import TypeAdapter

_REFERENCE = "#/components/schemas/{model}"


class Schemas:
    """The schemas of types; each is given with whether it is one of requests."""

    def __init__(self, types: Iterable[tuple[Any, bool]]) -> None:
        adapters = {_key(one, request): (one, request) for one, request in types}
        inputs: list[Any] = [
            (key, _mode(request), TypeAdapter(one)) for key, (one, request) in adapters.items()
        ]
        found, whole = TypeAdapter.json_schemas(inputs, ref_template=_REFERENCE)
        self._found = {key: _renamed(schema) for (key, _), schema in found.items()}
        self.named: dict[str, Any] = {
            _short(name): _renamed(schema) for name, schema in whole.get("$defs", {}).items()
        }

    def of(self, type_: Any, *, request: bool = False) -> Any:
        """Return the schema of one of the types, usually a reference."""
        return self._found[_key(type_, request)]


def parameters_of(fields: Any, where: Literal["query", "header"]) -> Iterator[dict[str, Any]]:
    """Yield a parameter for each field of a TypedDict or a model; None has none."""
    if fields is None:
        return
    schema = TypeAdapter(fields).json_schema()
    for name, given in schema.get("properties", {}).items():
        shown = {"name": name, "in": where, "required": name in schema.get("required", ())}
        about = given.pop("description", None)
        given.pop("title", None)
        yield {**shown, **({"description": about} if about else {}), "schema": given}


def _key(type_: Any, request: bool) -> str:
    return f"{type_!r} {id(type_)} {_mode(request)}"


def _mode(request: bool) -> Literal["validation", "serialization"]:
    return "validation" if request else "serialization"


def _renamed(value: Any) -> Any:
    """Return a schema without the titles that only repeat names, and with short references."""
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _renamed(one) for name, one in value.items() if not _is_title(name, one)}
    if isinstance(made.get("$ref"), str):
        head, _, name = made["$ref"].rpartition("/")
        made["$ref"] = f"{head}/{_short(name)}"
    return made


def _is_title(name: str, value: Any) -> bool:
    return name == "title" and isinstance(value, str)


def _short(name: str) -> str:
    """Return the name of a schema: with its module only where several have the same name."""
    return ".".join(name.split("__")[-2:])
