"""Parameters, bodies and addresses as OpenAPI 3.0 and 3.1 write them, and as Swagger 2.0 does."""

from __future__ import annotations

from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.backend_credentials import ApiKeyScheme
from agentdouble.mcp_services.openapi import inputs
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

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_STYLES = {
    "path": ("simple",),
    "query": ("form", "deepObject", *_DELIMITERS),
    "header": ("simple",),
    "cookie": ("form",),
}

_COLLECTION_DELIMITERS = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|", "multi": ","}
_FORM = "application/x-www-form-urlencoded"
_NO_SCHEMA = frozenset(("name", "in", "required", "description"))
_HERE = ("localhost", "127.", "[::1]")


class OpenApi3:
    """Reads the parts of an OpenAPI 3 document that Swagger 2.0 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def parameter(self, node: Json, location: str, uses: set[str]) -> OperationInput:
        """Return a parameter."""
        where = text(node.get("in"))
        if mapping(node.get("content")):
            media_type, content = next(iter(mapping(node["content"]).items()))
            style = Style("json" if inputs.is_json(media_type) else "simple")
            written = step(location, "content", media_type, "schema")
            schema = self._schemas.converted(mapping(content).get("schema"), written, uses)
        else:
            style = style_of(node, where)
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
        kind = inputs.kind_of(media_type)
        fields = self._fields(entry, location) if kind in ("urlencoded", "multipart") else {}
        schema = self._body_schema(kind, entry, fields, location, uses)
        field = OperationInput(
            name="body",
            where="body",
            schema=schema,
            required=boolean(node.get("required")),
            description=text(node.get("description")),
        )
        return field, DefinedBody(kind, inputs.sent_as(media_type), "body", fields=fields)

    def _body_schema(
        self, kind: str, entry: Json, fields: dict[str, DefinedField], location: str, uses: set[str]
    ) -> Any:
        schema = entry.get("schema")
        if kind == "raw":
            return inputs.raw_schema(location.rpartition("/")[2].replace("~1", "/"))
        at = step(location, "schema")
        if kind != "multipart" or not any(field.is_file for field in fields.values()):
            return self._schemas.converted(schema, at, uses)
        properties = {
            name: self._part(member, where, fields[name], uses)
            for name, (member, where) in self._properties(schema, at).items()
            if not mapping(member).get("readOnly")
        }
        required = [name for name in self._required(schema, at) if name in properties]
        found: Json = {"type": "object", "properties": properties}
        return {**found, "required": required} if required else found

    def _part(self, schema: Any, location: str, field: DefinedField, uses: set[str]) -> Any:
        if not field.is_file:
            return self._schemas.converted(schema, location, uses)
        node = mapping(self._document.followed(schema, location)[0])
        return inputs.file_schema(text(node.get("description")), several="items" in node)

    def _fields(self, entry: Json, location: str) -> dict[str, DefinedField]:
        properties = self._properties(entry.get("schema"), step(location, "schema"))
        return {
            name: DefinedField(is_file=self._is_file(schema, where))
            for name, (schema, where) in properties.items()
        }

    def _is_file(self, schema: Any, location: str) -> bool:
        node = mapping(self._document.followed(schema, location)[0])
        if "items" in node and text(node.get("type")) in ("array", ""):
            return self._is_file(node["items"], step(location, "items"))
        if node.get("format") == "binary":
            return True
        return "contentMediaType" in node and "contentEncoding" not in node

    def _properties(self, schema: Any, location: str) -> dict[str, tuple[Any, str]]:
        """Return an object's properties by name, including those of its allOf."""
        node, location = self._document.followed(schema, location)
        result: dict[str, tuple[Any, str]] = {}
        for index, member in enumerate(listed(mapping(node).get("allOf"))):
            result.update(self._properties(member, step(location, "allOf", index)))
        for name, one in mapping(mapping(node).get("properties")).items():
            result[name] = (one, step(location, "properties", name))
        return result

    def _required(self, schema: Any, location: str) -> list[str]:
        node = mapping(self._document.followed(schema, location)[0])
        names = [name for name in listed(node.get("required")) if isinstance(name, str)]
        for member in listed(node.get("allOf")):
            names += self._required(member, location)
        return list(dict.fromkeys(names))

    def accept(self, operation: Json, location: str) -> list[str]:
        """Return the media types of successful answers."""
        media_types: list[str] = []
        for status, response in mapping(operation.get("responses")).items():
            if status.startswith("2") or status == "default":
                node, _ = self._document.followed(response, step(location, "responses", status))
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
            url = url.replace(f"{{{name}}}", text(mapping(variable).get("default")))
        return url

    def api_keys(self) -> dict[str, ApiKeyScheme]:
        """Return the API keys that the document declares, by name."""
        components = mapping(self._document.root.get("components"))
        return api_keys(self._document, components.get("securitySchemes"))


def api_keys(document: Document, schemes: Any) -> dict[str, ApiKeyScheme]:
    """Return the API keys among security schemes, by name."""
    found: dict[str, ApiKeyScheme] = {}
    for name, scheme in mapping(schemes).items():
        node = mapping(document.followed(scheme, "#")[0])
        where: Any = node.get("in")
        if node.get("type") == "apiKey" and where in ("header", "query", "cookie"):
            found[name] = ApiKeyScheme(text(node.get("name")), where)
    return found


def style_of(node: Json, where: str) -> Style:
    """Return how a parameter is written; replace a style that its place does not allow."""
    styles = _STYLES.get(where, ("simple",))
    written = node.get("style")
    name: Any = written if written in styles else styles[0]
    explode = boolean(node["explode"]) if "explode" in node else name == "form"
    if name in _DELIMITERS:
        return Style("form", explode, _DELIMITERS[name])
    return Style(name, explode)


class Swagger2:
    """Reads the parts of a Swagger 2.0 document that OpenAPI 3 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def parameter(self, node: Json, location: str, uses: set[str]) -> OperationInput:
        """Return a parameter; in Swagger 2.0, form fields and bodies are parameters, too."""
        where = {"formData": "form"}.get(text(node.get("in")), text(node.get("in")))
        collection = text(node.get("collectionFormat"))
        explode = collection == "multi" and where in ("query", "form")
        style: Any = "form" if where in ("query", "form") else "simple"
        return OperationInput(
            name="body" if where == "body" else text(node.get("name")),
            where=where,
            schema=self._schema(node, where, location, uses),
            required=boolean(node.get("required")) or where == "path",
            description=text(node.get("description")),
            style=Style(style, explode, _COLLECTION_DELIMITERS.get(collection, ",")),
        )

    def _schema(self, node: Json, where: str, location: str, uses: set[str]) -> Any:
        if where == "body":
            return self._schemas.converted(node.get("schema"), step(location, "schema"), uses)
        if node.get("type") == "file":
            return inputs.FILE
        schema = {key: value for key, value in node.items() if key not in _NO_SCHEMA}
        return self._schemas.converted(schema, location, uses)

    def body(
        self, operation: Json, location: str, fields: list[OperationInput], uses: set[str]
    ) -> tuple[OperationInput | None, DefinedBody | None]:
        """Return how the body is written; its input is already among the ``given`` inputs."""
        consumes = listed(operation.get("consumes", self._document.root.get("consumes")))
        consumed = [media_type for media_type in consumes if inputs.is_media_type(text(media_type))]
        form = [field for field in fields if field.where == "form"]
        if form:
            return None, _form(form, consumed)
        if not any(field.where == "body" for field in fields):
            return None, None
        media_type = inputs.preferred(consumed or ["application/json"])
        if inputs.kind_of(media_type) != "json":  # a form has no body here
            media_type = "application/json"
        return None, DefinedBody("json", inputs.sent_as(media_type), "body")

    def accept(self, operation: Json, location: str) -> list[str]:
        """Return the media types of the answers."""
        produces = listed(operation.get("produces", self._document.root.get("produces")))
        return [media_type for media_type in produces if isinstance(media_type, str)]

    def address(self, node: Json) -> str | None:
        """Return the document's address; a path or an operation has none."""
        host, base = text(node.get("host")), text(node.get("basePath")) or "/"
        return f"{_scheme(node, host)}://{host}{base}" if host else None

    def api_keys(self) -> dict[str, ApiKeyScheme]:
        """Return the API keys that the document declares, by name."""
        return api_keys(self._document, self._document.root.get("securityDefinitions"))


def _form(given: list[OperationInput], consumes: list[str]) -> DefinedBody:
    fields = {
        field.name: DefinedField(field.style, is_file=field.schema is inputs.FILE)
        for field in given
    }
    has_file = any(field.is_file for field in fields.values())
    multipart = has_file or (bool(consumes) and _FORM not in map(inputs.essence, consumes))
    if multipart:
        return DefinedBody("multipart", "multipart/form-data", None, fields=fields)
    return DefinedBody("urlencoded", _FORM, None, fields=fields)


def _scheme(node: Json, host: str) -> str:
    schemes = listed(node.get("schemes"))
    return "https" if "https" in schemes or not (schemes or host.startswith(_HERE)) else "http"
