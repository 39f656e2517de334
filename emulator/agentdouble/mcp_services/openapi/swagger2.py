"""Parameters, bodies and addresses as Swagger 2.0 writes them."""

from __future__ import annotations

from typing import Any

from agentdouble.mcp_services.authentication import ApiKeyScheme
from agentdouble.mcp_services.openapi import bodies
from agentdouble.mcp_services.openapi.definition import (
    Body,
    Field,
    Json,
    Style,
    boolean,
    listed,
    text,
)
from agentdouble.mcp_services.openapi.documents import Document, step
from agentdouble.mcp_services.openapi.inputs import Input
from agentdouble.mcp_services.openapi.openapi3 import api_keys
from agentdouble.mcp_services.openapi.schemas import Schemas

_DELIMITERS = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|", "multi": ","}
_FORM = "application/x-www-form-urlencoded"
_NO_SCHEMA = frozenset(("name", "in", "required", "description"))
_HERE = ("localhost", "127.", "[::1]")


class Swagger2:
    """Reads the parts of a Swagger 2.0 document that OpenAPI 3 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def parameter(self, node: Json, place: str, uses: set[str]) -> Input:
        """Return a parameter; in Swagger 2.0, form fields and bodies are parameters, too."""
        where = {"formData": "form"}.get(text(node.get("in")), text(node.get("in")))
        return Input(
            name="body" if where == "body" else text(node.get("name")),
            where=where,
            schema=self._schema(node, where, place, uses),
            required=boolean(node.get("required")) or where == "path",
            description=text(node.get("description")),
            style=_style(node, where),
        )

    def _schema(self, node: Json, where: str, place: str, uses: set[str]) -> Any:
        if where == "body":
            return self._schemas.converted(node.get("schema"), step(place, "schema"), uses)
        if node.get("type") == "file":
            return bodies.FILE
        schema = {key: value for key, value in node.items() if key not in _NO_SCHEMA}
        return self._schemas.converted(schema, place, uses)

    def body(
        self, operation: Json, place: str, given: list[Input], uses: set[str]
    ) -> tuple[Input | None, Body | None]:
        """Return how the body is written; its input is already among the ``given`` inputs."""
        consumes = listed(operation.get("consumes", self._document.root.get("consumes")))
        consumed = [one for one in consumes if bodies.is_media_type(text(one))]
        form = [one for one in given if one.where == "form"]
        if form:
            return None, _form(form, consumed)
        if not any(one.where == "body" for one in given):
            return None, None
        media_type = bodies.preferred(consumed or ["application/json"])
        if bodies.kind_of(media_type) != "json":  # a form has no body here
            media_type = "application/json"
        return None, Body("json", bodies.sent_as(media_type), "body")

    def accept(self, operation: Json, place: str) -> list[str]:
        """Return the media types of the answers."""
        produces = listed(operation.get("produces", self._document.root.get("produces")))
        return [one for one in produces if isinstance(one, str)]

    def address(self, node: Json) -> str | None:
        """Return the document's address; a path or an operation has none."""
        host, base = text(node.get("host")), text(node.get("basePath")) or "/"
        return f"{_scheme(node, host)}://{host}{base}" if host else None

    def api_keys(self) -> dict[str, ApiKeyScheme]:
        """Return the API keys that the document declares, by name."""
        return api_keys(self._document, self._document.root.get("securityDefinitions"))


def _form(given: list[Input], consumes: list[str]) -> Body:
    fields = {one.name: Field(one.style, is_file=one.schema is bodies.FILE) for one in given}
    has_file = any(one.is_file for one in fields.values())
    multipart = has_file or (bool(consumes) and _FORM not in map(bodies.essence, consumes))
    if multipart:
        return Body("multipart", "multipart/form-data", None, fields=fields)
    return Body("urlencoded", _FORM, None, fields=fields)


def _style(node: Json, where: str) -> Style:
    collection = text(node.get("collectionFormat"))
    explode = collection == "multi" and where in ("query", "form")
    how: Any = "form" if where in ("query", "form") else "simple"
    return Style(how, explode, _DELIMITERS.get(collection, ","))


def _scheme(node: Json, host: str) -> str:
    schemes = listed(node.get("schemes"))
    return "https" if "https" in schemes or not (schemes or host.startswith(_HERE)) else "http"
