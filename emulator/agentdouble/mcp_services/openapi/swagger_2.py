"""Parameters, bodies and addresses as Swagger 2.0 writes them."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import inputs, keywords
from agentdouble.mcp_services.openapi.definition import (
    DefinedBody,
    DefinedField,
    Document,
    Json,
    Style,
    boolean,
    listed,
    mapping,
    step,
    text,
)
from agentdouble.mcp_services.openapi.inputs import OperationInput
from agentdouble.mcp_services.openapi.schemas import Schemas

_DELIMITERS = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|"}  # of collectionFormat
_TYPES = ("string", "number", "integer", "boolean", "array", "file")
_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_NO_SCHEMA = frozenset(("name", "in", "required", "description"))
_HERE = ("localhost", "127.", "[::1]")


class Swagger2:
    """Reads the parts of a Swagger 2.0 document that OpenAPI 3 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def parameter(self, node: Json, location: str, uses: set[str]) -> OperationInput:
        """Return a parameter; in Swagger 2.0, form fields and bodies are parameters, too."""
        where = {"formData": "form"}.get(text(node.get("in")), text(node.get("in")))
        return OperationInput(
            name="body" if where == "body" else text(node.get("name")),
            where=where,
            schema=self._schema(node, where, location, uses),
            required=boolean(node.get("required")) or where == "path",
            description=text(node.get("description")),
            style=_style(node, where, location),
        )

    def _schema(self, node: Json, where: str, location: str, uses: set[str]) -> Any:
        if where == "body":
            at = step(location, "schema")
            target, place = self._document.followed_if_possible(node.get("schema"), at)
            if mapping(target).get("format") == "byte":  # it decides how the body is sent
                return self._schemas.converted(target, place, uses)
            return self._schemas.converted(node.get("schema"), at, uses)
        if node.get("type") == "file":
            return inputs.FILE
        keywords.check_type(self._document, node, _TYPES, location)
        schema = {key: value for key, value in node.items() if key not in _NO_SCHEMA}
        return self._schemas.converted(schema, location, uses)

    def body(
        self, operation: Json, location: str, fields: list[OperationInput], uses: set[str]
    ) -> tuple[OperationInput | None, DefinedBody | None]:
        """Return how the body is written; its input is among ``fields``, and replaced there."""
        consumes = listed(operation.get("consumes", self._document.root.get("consumes")))
        consumed = [media_type for media_type in consumes if inputs.is_media_type(text(media_type))]
        form = [field for field in fields if field.where == "form"]
        places = [index for index, field in enumerate(fields) if field.where == "body"]
        if form and places:
            raise DefinitionError(
                "it has parameters in 'body' and in 'formData', and a request has one body",
                location=step(location, "parameters"),
            )
        if form:
            return None, _form(form, consumed)
        if not places:
            return None, None
        media_type = inputs.preferred(consumed or ["application/json"])
        field = fields[places[0]]
        kind = inputs.kind_of(media_type, field.schema)
        if kind in ("text", "raw"):
            type_ = mapping(field.schema).get("type")
            schema = inputs.schema_of_kind(kind, media_type, type_, field.schema)
            fields[places[0]] = dataclasses.replace(field, schema=schema)
        return None, DefinedBody(kind, inputs.sent_as(media_type), "body")

    def accept(self, operation: Json, location: str) -> list[str]:
        """Return the media types of the answers."""
        produces = listed(operation.get("produces", self._document.root.get("produces")))
        return [media_type for media_type in produces if isinstance(media_type, str)]

    def address(self, node: Json) -> str | None:
        """Return the address of the document, or of an operation with schemes of its own."""
        root = self._document.root
        if node is not root and not node.get("schemes"):
            return None
        host, base = text(root.get("host")), text(root.get("basePath")) or "/"
        if "://" in host:  # "the host only", the format says: this one would be another host
            return None
        return f"{_scheme(node, host)}://{host}/{base.lstrip('/')}" if host else None

    def security_schemes(self) -> Json:
        """Return the security schemes that the document declares, by name."""
        return mapping(self._document.root.get("securityDefinitions"))


def _form(given: list[OperationInput], consumes: list[str]) -> DefinedBody:
    fields = {
        field.name: DefinedField(field.style, is_file=field.schema is inputs.FILE)
        for field in given
    }
    has_file = any(field.is_file for field in fields.values())
    kinds = [inputs.essence(media_type) for media_type in consumes]
    if has_file or (_MULTIPART in kinds and _FORM not in kinds):
        return DefinedBody("multipart", _MULTIPART, None, fields=fields)
    return DefinedBody("urlencoded", _FORM, None, fields=fields)


def _style(node: Json, where: str, location: str) -> Style:
    """Return how an array is written; raise DefinitionError."""
    in_pairs = where in ("query", "form")
    if node.get("type", "array") != "array":
        return Style("form" if in_pairs else "simple")
    collection = text(node.get("collectionFormat")) or "csv"
    if collection == "multi" and not in_pairs:
        _refuse(collection, f"only a query and a form repeat a name, not {where!r}", location)
    if collection != "multi" and collection not in _DELIMITERS:
        _refuse(collection, f"it is not one of {', '.join(_DELIMITERS)}, multi", location)
    nested, items, at = [], mapping(node.get("items")), step(location, "items")
    while items.get("type") == "array":
        inner = text(items.get("collectionFormat")) or "csv"
        if inner not in _DELIMITERS:
            _refuse(inner, f"an array in an array is one of {', '.join(_DELIMITERS)}", at)
        nested.append(_DELIMITERS[inner])
        items, at = mapping(items.get("items")), step(at, "items")
    return Style(
        "form" if in_pairs else "simple",
        collection == "multi",
        _DELIMITERS.get(collection, ","),
        tuple(nested),
    )


def _refuse(collection: str, reason: str, location: str) -> NoReturn:
    raise DefinitionError(
        f"the collectionFormat {collection!r} cannot be used: {reason}",
        location=step(location, "collectionFormat"),
    )


def _scheme(node: Json, host: str) -> str:
    schemes = [text(scheme) for scheme in listed(node.get("schemes"))]
    if "https" in schemes or not (schemes or host.startswith(_HERE)):
        return "https"
    return "http" if "http" in schemes or not schemes else schemes[0]
