"""Every operation of a document, with the data that a tool needs."""

from __future__ import annotations

import dataclasses
import re
import reprlib
from collections.abc import Iterator
from typing import Any, TypeVar

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.backend_credentials import is_header_name
from agentdouble.mcp_services.openapi import inputs, keywords, security
from agentdouble.mcp_services.openapi.definition import (
    ApiDefinition,
    DefinedBody,
    DefinedOperation,
    Document,
    Json,
    boolean,
    mapping,
    step,
    text,
)
from agentdouble.mcp_services.openapi.inputs import OperationInput
from agentdouble.mcp_services.openapi.keywords import METHODS
from agentdouble.mcp_services.openapi.openapi_3 import OpenApi3
from agentdouble.mcp_services.openapi.schemas import Schemas
from agentdouble.mcp_services.openapi.swagger_2 import Swagger2

T = TypeVar("T")

LONGEST_NAME = 128
_NO_OPERATIONS = "the definition has no operations under 'paths', so the service has no tools."
_PLACES = ("path", "query", "header", "cookie")
_PLACES_2 = ("path", "query", "header", "formData", "body")  # of Swagger 2.0

# The connection sets these.
_NOT_GIVEN = frozenset(
    (
        *("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding"),
        "upgrade",
    )
)
# The definition sets these: in OpenAPI 3 such a parameter "SHALL be ignored".
_NOT_GIVEN_3 = _NOT_GIVEN | {"accept", "authorization", "content-type"}


@dataclasses.dataclass(frozen=True)
class _Found:
    """An operation that has been read; its schema is made after all references are known."""

    operation: DefinedOperation
    given: list[OperationInput]
    names: list[str]
    uses: set[str]


def definition(document: Document) -> ApiDefinition:
    """Return the definition of a document; raise DefinitionError if it is unusable."""
    schemas = Schemas(document)
    reader = (Swagger2 if document.version == "2.0" else OpenApi3)(document, schemas)
    used: set[str] = set()
    keywords.check(document, "document", document.root, "#")
    drafts = [_operation(document, reader, used, *where) for where in _operations(document)]
    schemas.break_circles()
    info = mapping(document.root.get("info"))
    declared = security.schemes(document, reader.security_schemes())
    security.note_undeclared(document, (draft.operation for draft in drafts), declared)
    return ApiDefinition(
        title=text(info.get("title")),
        version=str(info.get("version", "")),
        description=text(info.get("description")),
        operations=tuple(_complete(draft, schemas) for draft in drafts),
        address=reader.address(document.root),
        security_schemes=declared,
        document=document.root,
        warnings=(*document.warnings, *([] if drafts else [_NO_OPERATIONS])),
    )


def _complete(draft: _Found, schemas: Schemas) -> DefinedOperation:
    needed = schemas.definitions(draft.uses)
    schema = inputs.schema_of(draft.given, draft.names, needed)
    return dataclasses.replace(draft.operation, input_schema=schema)


def _operations(document: Document) -> Iterator[tuple[str, str, Json, Json, str]]:
    """Yield path, method, operation, path item and place of each operation, in their order."""
    for path, item in _read(document.root.get("paths", {}), dict, "#/paths").items():
        if path.startswith("x-"):
            continue
        if not path.startswith("/"):  # after the base URL it would change the host
            raise DefinitionError(
                f"the path {path[:80]!r} does not begin with a slash",
                location=step("#", "paths", path),
            )
        node, location = document.followed(item, step("#", "paths", path))
        if node is not item:  # what stands beside the reference counts, too
            node = {**_read(node, dict, location), **item}
        keywords.check(document, "path item", _read(node, dict, location), location)
        for method in node:
            if method in METHODS:
                yield (
                    path,
                    method,
                    _read(node[method], dict, step(location, method)),
                    node,
                    location,
                )


def _operation(
    document: Document,
    reader: Swagger2 | OpenApi3,
    used: set[str],
    path: str,
    method: str,
    node: Json,
    item: Json,
    location: str,
) -> _Found:
    at = step(location, method)
    keywords.check(document, "operation", node, at)
    uses: set[str] = set()
    not_given = _NOT_GIVEN if document.version == "2.0" else _NOT_GIVEN_3
    sent = path.partition("#")[0]
    fields = [
        field
        for field in _parameters(document, reader, sent, item, node, (location, at), uses)
        if field.where != "header" or field.name.lower() not in not_given
    ]
    fields += _undeclared(sent, fields)
    body_input, body = reader.body(node, at, fields, uses)
    fields += [body_input] if body_input else []
    names = inputs.arguments(fields)
    operation = DefinedOperation(
        name=_name(document, node, method, path, used),
        title=text(node.get("summary")) or None,
        description=_description(node, method, path),
        method=method.upper(),
        path=path,
        input_schema={},
        parameters=inputs.parameters(fields, names),
        body=_with_arguments(body, fields, names),
        accept=_accept(reader.accept(node, at)),
        address=reader.address(node) or reader.address(item),
        security=security.alternatives(node, document.root),
    )
    return _Found(operation, fields, names, uses)


def _parameters(
    document: Document,
    reader: Swagger2 | OpenApi3,
    path: str,
    item: Json,
    node: Json,
    places: tuple[str, str],
    uses: set[str],
) -> list[OperationInput]:
    """Return an operation's parameters, which override those of its path."""
    fields: dict[tuple[str, str], OperationInput] = {}
    for owner, location in zip((item, node), places, strict=True):
        at = step(location, "parameters")
        for index, written in enumerate(_read(owner.get("parameters", []), list, at)):
            target, where = document.followed(written, step(at, index))
            _check_place(_read(target, dict, where), document, where)
            keywords.check(document, "parameter", target, where)
            field = reader.parameter(target, where, uses)
            if not field.name:
                raise DefinitionError("a parameter needs a name", location=where)
            if field.where == "header" and not is_header_name(field.name):
                raise DefinitionError(f"{field.name!r} is not a valid header name", location=where)
            if field.where == "path" and f"{{{field.name}}}" not in path:
                continue
            fields[field.name, field.where] = field
    return list(fields.values())


def _check_place(parameter: Json, document: Document, location: str) -> None:
    allowed = _PLACES_2 if document.version == "2.0" else _PLACES
    if parameter.get("in") not in allowed:
        raise DefinitionError(
            f"a parameter needs 'in' with one of {', '.join(allowed)}, "
            f"not {reprlib.repr(parameter.get('in'))}",
            location=location,
        )


def _read(value: Any, kind: type[T], location: str) -> T:
    """Return a value that requests are made from; raise DefinitionError for another type."""
    if not isinstance(value, kind):
        name = "an object" if kind is dict else "a list"
        raise DefinitionError(f"{reprlib.repr(value)} is not {name}", location=location)
    return value


def _undeclared(path: str, fields: list[OperationInput]) -> list[OperationInput]:
    """Return the placeholders of a path that no parameter declares, as strings."""
    declared = {field.name for field in fields if field.where == "path"}
    return [
        OperationInput(name, "path", {"type": "string"}, required=True)
        for name in dict.fromkeys(re.findall(r"\{([^{}]+)\}", path))
        if name not in declared
    ]


def _with_arguments(
    body: DefinedBody | None, inputs: list[OperationInput], names: list[str]
) -> DefinedBody | None:
    if body is None:
        return None
    pairs = list(zip(names, inputs, strict=True))
    if body.argument is None:
        fields = {name: field.name for name, field in pairs if field.where == "form"}
        return dataclasses.replace(body, arguments=fields)
    argument = next(name for name, field in pairs if field.where == "body")
    return dataclasses.replace(body, argument=argument)


def _name(document: Document, node: Json, method: str, path: str, used: set[str]) -> str:
    """Return a unique name that MCP allows (A-Z a-z 0-9 . _ -, at most 128)."""
    written = text(node.get("operationId")) or f"{method}{path}"
    base = re.sub(r"[^A-Za-z0-9._-]+", "_", written).strip("_")[:LONGEST_NAME] or method
    name, number = base, 1
    while name in used:
        number += 1
        ending = f"_{number}"
        name = base[: LONGEST_NAME - len(ending)] + ending
    if number > 1 and node.get("operationId"):
        document.note(
            f"{path} {method}",
            f"two operations have the name {base!r}: the tool of {method.upper()} {path} is "
            f"{name!r}.",
        )
    used.add(name)
    return name


def _description(node: Json, method: str, path: str) -> str:
    summary, longer = text(node.get("summary")).strip(), text(node.get("description")).strip()
    parts = [summary, longer if longer != summary else ""]
    if boolean(node.get("deprecated")):
        parts.insert(0, "Deprecated.")
    return "\n\n".join(part for part in parts if part) or f"{method.upper()} {path}"


def _accept(media_types: list[str]) -> str:
    valid = [
        media_type for media_type in dict.fromkeys(media_types) if inputs.is_media_type(media_type)
    ]
    accepted: list[Any] = [
        media_type for media_type in valid or ["application/json"] if media_type != "*/*"
    ]
    return ", ".join([*accepted, "*/*;q=0.1"])
