"""Parameters, bodies and addresses as OpenAPI 3.0 and 3.1 write them."""

from __future__ import annotations

from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.authentication import ApiKeyScheme
from agentdouble.mcp_services.openapi import bodies
from agentdouble.mcp_services.openapi.definition import (
    Body,
    Field,
    Json,
    Style,
    boolean,
    listed,
    mapping,
    text,
)
from agentdouble.mcp_services.openapi.documents import Document, step
from agentdouble.mcp_services.openapi.inputs import Input
from agentdouble.mcp_services.openapi.schemas import Schemas

_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_STYLES = {
    "path": ("simple",),
    "query": ("form", "deepObject", *_DELIMITERS),
    "header": ("simple",),
    "cookie": ("form",),
}


class OpenApi3:
    """Reads the parts of an OpenAPI 3 document that Swagger 2.0 writes in another way."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def parameter(self, node: Json, place: str, uses: set[str]) -> Input:
        """Return a parameter."""
        where = text(node.get("in"))
        if mapping(node.get("content")):
            media_type, content = next(iter(mapping(node["content"]).items()))
            style = Style("json" if bodies.is_json(media_type) else "simple")
            written = step(place, "content", media_type, "schema")
            schema = self._schemas.converted(mapping(content).get("schema"), written, uses)
        else:
            style = style_of(node, where)
            schema = self._schemas.converted(node.get("schema"), step(place, "schema"), uses)
        return Input(
            name=text(node.get("name")),
            where=where,
            schema=schema,
            required=boolean(node.get("required")) or where == "path",
            description=text(node.get("description")),
            deprecated=boolean(node.get("deprecated")),
            style=style,
        )

    def body(
        self, operation: Json, place: str, _form: list[Input], uses: set[str]
    ) -> tuple[Input | None, Body | None]:
        """Return an operation's body as an input, and how it is written."""
        node, place = self._document.followed(
            operation.get("requestBody"), step(place, "requestBody")
        )
        if node is None:
            return None, None
        content = mapping(mapping(node).get("content"))
        if not content:
            raise DefinitionError("a requestBody needs content of a media type", place=place)
        media_type = bodies.preferred(list(content))
        place = step(place, "content", media_type)
        if not bodies.is_media_type(media_type):
            raise DefinitionError(f"{media_type!r} is no media type", place=place)
        entry = mapping(content[media_type])
        kind = bodies.kind_of(media_type)
        fields = self._fields(entry, place) if kind in ("urlencoded", "multipart") else {}
        schema = self._body_schema(kind, entry, fields, place, uses)
        given = Input(
            name="body",
            where="body",
            schema=schema,
            required=boolean(node.get("required")),
            description=text(node.get("description")),
        )
        return given, Body(kind, bodies.sent_as(media_type), "body", fields=fields)

    def _body_schema(
        self, kind: str, entry: Json, fields: dict[str, Field], place: str, uses: set[str]
    ) -> Any:
        schema = entry.get("schema")
        if kind == "raw":
            return bodies.raw_schema(place.rpartition("/")[2].replace("~1", "/"))
        at = step(place, "schema")
        if kind != "multipart" or not any(one.is_file for one in fields.values()):
            return self._schemas.converted(schema, at, uses)
        properties = {
            name: self._part(one, where, fields[name], uses)
            for name, (one, where) in self._properties(schema, at).items()
            if not mapping(one).get("readOnly")
        }
        required = [name for name in self._required(schema, at) if name in properties]
        found: Json = {"type": "object", "properties": properties}
        return {**found, "required": required} if required else found

    def _part(self, schema: Any, place: str, field: Field, uses: set[str]) -> Any:
        if not field.is_file:
            return self._schemas.converted(schema, place, uses)
        node = mapping(self._document.followed(schema, place)[0])
        return bodies.file_schema(text(node.get("description")), several="items" in node)

    def _fields(self, entry: Json, place: str) -> dict[str, Field]:
        properties = self._properties(entry.get("schema"), step(place, "schema"))
        return {
            name: Field(is_file=self._is_file(schema, where))
            for name, (schema, where) in properties.items()
        }

    def _is_file(self, schema: Any, place: str) -> bool:
        node = mapping(self._document.followed(schema, place)[0])
        if "items" in node and text(node.get("type")) in ("array", ""):
            return self._is_file(node["items"], step(place, "items"))
        if node.get("format") == "binary":
            return True
        return "contentMediaType" in node and "contentEncoding" not in node

    def _properties(self, schema: Any, place: str) -> dict[str, tuple[Any, str]]:
        """Return an object's properties by name, including those of its allOf."""
        node, place = self._document.followed(schema, place)
        found: dict[str, tuple[Any, str]] = {}
        for index, member in enumerate(listed(mapping(node).get("allOf"))):
            found.update(self._properties(member, step(place, "allOf", index)))
        for name, one in mapping(mapping(node).get("properties")).items():
            found[name] = (one, step(place, "properties", name))
        return found

    def _required(self, schema: Any, place: str) -> list[str]:
        node = mapping(self._document.followed(schema, place)[0])
        found = [name for name in listed(node.get("required")) if isinstance(name, str)]
        for member in listed(node.get("allOf")):
            found += self._required(member, place)
        return list(dict.fromkeys(found))

    def accept(self, operation: Json, place: str) -> list[str]:
        """Return the media types of successful answers."""
        found: list[str] = []
        for status, response in mapping(operation.get("responses")).items():
            if status.startswith("2") or status == "default":
                node, _ = self._document.followed(response, step(place, "responses", status))
                found += mapping(mapping(node).get("content"))
        return found

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
    known = _STYLES.get(where, ("simple",))
    written = node.get("style")
    name: Any = written if written in known else known[0]
    explode = boolean(node["explode"]) if "explode" in node else name == "form"
    if name in _DELIMITERS:
        return Style("form", explode, _DELIMITERS[name])
    return Style(name, explode)
