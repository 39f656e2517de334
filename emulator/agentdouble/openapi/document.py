"""The OpenAPI document (3.1) of operations that are served."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from agentdouble.openapi.operation import JSON, Format, Served, operation_of

_REFERENCE = "#/components/schemas/{model}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_Mode = Literal["validation", "serialization"]


def document(
    info: Mapping[str, Any],
    schemes: Mapping[str, Any],
    surfaces: Sequence[tuple[Format, Sequence[Served]]],
    *,
    keyed: bool,
) -> dict[str, Any]:
    """Return the document of surfaces as JSON-ready data; ``keyed`` doubles ask for a key.

    Of two operations with one method and path, the first counts.
    """
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, Any] = {}
    for form, operations in surfaces:
        for served in operations:
            methods = paths.setdefault(served.path, {})
            if served.method.lower() in methods:
                continue
            security = form.security or (("apiKey",) if keyed else ())
            methods[served.method.lower()] = {
                **_operation(served, form, schemas),
                "security": [{name: ()} for name in security],
            }
            tags[form.tag] = {"name": form.tag}
    components = {"schemas": schemas.resolve(), "securitySchemes": dict(schemes)}
    return {
        "openapi": "3.1.0",
        "info": dict(info),
        "tags": list(tags.values()),
        "paths": paths,
        "components": components,
    }


def _operation(served: Served, form: Format, schemas: _Schemas) -> dict[str, Any]:
    operation = operation_of(served.endpoint, served.method)
    summary, _, description = (
        operation.summary or inspect.getdoc(served.endpoint) or ""
    ).partition("\n")
    document: dict[str, Any] = {
        "operationId": _operation_id(served),
        "tags": [form.tag],
        "summary": summary.replace("``", "`").rstrip("."),
    }
    if description.strip():
        document["description"] = description.strip().replace("``", "`")
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(served.path)
    ]
    parameters += [*_query(form.query), *_query(operation.query)]
    if parameters:
        document["parameters"] = parameters
    if operation.body is not None:
        content = {operation.body_type: {"schema": schemas.of(operation.body, "validation")}}
        document["requestBody"] = {"content": content, "required": not operation.optional}
    error = {JSON: {"schema": schemas.of(form.error)}}
    responses: dict[str, Any] = {"default": {"description": "An error", "content": error}}
    for answer in operation.answers:
        response = responses.setdefault(str(answer.status), {"description": "Success"})
        if answer.type is not None:
            content = response.setdefault("content", {})
            content[answer.media_type] = {"schema": schemas.of(answer.type)}
    return {**document, "responses": responses}


def _operation_id(served: Served) -> str:
    """Return the name of an operation for generated clients: the action, or method and path."""
    action = re.search(r"[?&]Action=(\w+)", served.path)
    if action:
        return action[1]
    words = re.findall(r"[A-Za-z0-9]+", served.path) or ["root"]
    end = "_" if served.path.endswith("/") and served.path != "/" else ""
    return "_".join((served.method.lower(), *words)) + end


def _query(fields: Any) -> Iterator[dict[str, Any]]:
    """Yield a parameter for each field of a TypedDict or a model, or nothing for None."""
    if fields is None:
        return
    schema = TypeAdapter(fields).json_schema()
    for name, field in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        yield {"name": name, "in": "query", "required": required, "schema": _without_titles(field)}


class _Schemas:
    """The JSON Schemas of types; those with a name stand in ``components`` once.

    pydantic names them when it knows all of them: until ``resolve`` fills them, schemas are empty.
    """

    def __init__(self) -> None:
        self._schemas: dict[tuple[str, _Mode], tuple[Any, dict[str, Any]]] = {}

    def of(self, type_: Any, mode: _Mode = "serialization") -> dict[str, Any]:
        """Return the schema of a type, which is empty until ``resolve`` is called."""
        _, schema = self._schemas.setdefault((f"{type_!r} {id(type_)}", mode), (type_, {}))
        return schema

    def resolve(self) -> dict[str, Any]:
        """Fill the schemas, and return those with a name."""
        inputs: list[Any] = [
            (key, mode, TypeAdapter(type_)) for (key, mode), (type_, _) in self._schemas.items()
        ]
        schemas, common = TypeAdapter.json_schemas(inputs, ref_template=_REFERENCE)
        for key, schema in schemas.items():
            self._schemas[key][1].update(_without_titles(schema))
        named = common.get("$defs", {})
        return {_short(name): _without_titles(schema) for name, schema in named.items()}


def _without_titles(value: Any) -> Any:
    """Return a schema without the titles, which only repeat names, and with short references."""
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {
        name: _without_titles(item)
        for name, item in value.items()
        if not (name == "title" and isinstance(item, str))
    }
    if isinstance(schema.get("$ref"), str):
        head, _, name = schema["$ref"].rpartition("/")
        schema["$ref"] = f"{head}/{_short(name)}"
    return schema


def _short(name: str) -> str:
    """Return the name of a schema: with its module only where several have the same name."""
    return ".".join(name.split("__")[-2:])
