"""Parameters, bodies and addresses as OpenAPI 3.0 and 3.1 write them."""

from __future__ import annotations

import dataclasses
from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import inputs
from agentdouble.mcp_services.openapi.definition import (
    DefinedBody,
    Document,
    Json,
    Kind,
    Style,
    boolean,
    listed,
    mapping,
    step,
    text,
)
from agentdouble.mcp_services.openapi.form_fields import FormFields
from agentdouble.mcp_services.openapi.inputs import OperationInput
from agentdouble.mcp_services.openapi.schemas import Schemas
from agentdouble.mcp_services.openapi.serialization import text_of
from agentdouble.mcp_services.openapi.styles import style_of

_FORMS = ("urlencoded", "multipart")


class OpenApi3:
    """Reads the parts of an OpenAPI 3 document that Swagger 2.0 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas
        self._forms = FormFields(document, schemas)

    def parameter(self, node: Json, location: str, uses: set[str]) -> OperationInput:
        """Return a parameter."""
        where = text(node.get("in"))
        if mapping(node.get("content")):
            media_type, content = next(iter(mapping(node["content"]).items()))
            style = Style("json" if inputs.is_json(media_type) else "text")
            written = step(location, "content", media_type, "schema")
            schema = self._schemas.converted(mapping(content).get("schema"), written, uses)
        else:
            style = style_of(node, where, location)
            schema = self._schemas.converted(node.get("schema"), step(location, "schema"), uses)
        return OperationInput(
            name=text(node.get("name")),
            where=where,
            schema=schema,
            required=boolean(node.get("required")) or where == "path",
            description=text(node.get("description")),
            deprecated=boolean(node.get("deprecated")),
            style=style,
        )

    def body(
        self, operation: Json, location: str, _form: list[OperationInput], uses: set[str]
    ) -> tuple[OperationInput | None, DefinedBody | None]:
        """Return an operation's body as an input, and how it is written."""
        node, location = self._document.followed(
            operation.get("requestBody"), step(location, "requestBody")
        )
        if node is None:
            return None, None
        content = mapping(mapping(node).get("content"))
        if not content:
            raise DefinitionError("a requestBody needs content of a media type", location=location)
        media_type = inputs.preferred(list(content))
        location = step(location, "content", media_type)
        if not inputs.is_media_type(media_type):
            raise DefinitionError(f"{media_type!r} is not a media type", location=location)
        entry = mapping(content[media_type])
        followed = self._document.followed_if_possible(entry.get("schema"), location)[0]
        kind = inputs.kind_of(media_type, followed)
        body = DefinedBody(kind, inputs.sent_as(media_type), "body")
        if kind in _FORMS:
            schema, fields, others = self._forms.read(kind, entry, location, uses)
            body = dataclasses.replace(body, fields=fields, others=others)
        else:
            schema = self._schema(kind, media_type, entry.get("schema"), location, uses)
        field = OperationInput(
            name="body",
            where="body",
            schema=schema,
            required=boolean(node.get("required")),
            description=text(node.get("description")),
        )
        return field, body

    def _schema(
        self, kind: Kind, media_type: str, schema: Any, location: str, uses: set[str]
    ) -> Any:
        """Return the schema of a body that is not a form."""
        at = step(location, "schema")
        if kind == "json":
            return self._schemas.converted(schema, at, uses)
        node = mapping(self._document.followed_if_possible(schema, at)[0])
        scalar = node.get("type") in inputs.SCALARS  # no other needs its definitions
        converted = self._schemas.converted(schema, at, uses) if scalar else {}
        return inputs.schema_of_kind(kind, media_type, node.get("type"), converted)

    def accept(self, operation: Json, location: str) -> list[str]:
        """Return the media types of successful answers."""
        media_types: list[str] = []
        for status, response in mapping(operation.get("responses")).items():
            if status.startswith("2") or status == "default":
                at = step(location, "responses", status)
                node, _ = self._document.followed_if_possible(response, at)
                media_types += mapping(mapping(node).get("content"))
        return media_types

    def address(self, node: Json) -> str | None:
        """Return the first server of a document, a path or an operation, with its defaults."""
        servers = listed(node.get("servers"))
        if not servers:
            return None
        server = mapping(servers[0])
        url = text(server.get("url"))
        for name, variable in mapping(server.get("variables")).items():
            default = mapping(variable).get("default")
            if default is not None:  # YAML writes a port as a number
                url = url.replace(f"{{{name}}}", text_of(default))
        return url

    def security_schemes(self) -> Json:
        """Return the security schemes that the document declares, by name."""
        return mapping(mapping(self._document.root.get("components")).get("securitySchemes"))
