"""The fields of urlencoded and multipart forms of OpenAPI 3, by schema and Encoding Object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import inputs
from agentdouble.mcp_services.openapi.definition import (
    DefinedField,
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
from agentdouble.mcp_services.openapi.schemas import Schemas
from agentdouble.mcp_services.openapi.styles import style_of

_STYLED = frozenset(("style", "explode", "allowReserved"))
_ONE_FILE, _SEVERAL_FILES = frozenset(("one",)), frozenset(("several",))


class FormFields:
    """Reads the forms of a document."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas

    def read(
        self, kind: Kind, entry: Json, location: str, uses: set[str]
    ) -> tuple[Any, dict[str, DefinedField], DefinedField]:
        """Return a form's schema, its fields by name, and a field that its schema does not name."""
        fields = self._fields(kind, entry, location)
        others = self._others(entry, location) if kind == "multipart" else DefinedField()
        return self._schema(entry.get("schema"), fields, others, location, uses), fields, others

    def _schema(
        self,
        schema: Any,
        fields: dict[str, DefinedField],
        others: DefinedField,
        location: str,
        uses: set[str],
    ) -> Any:
        at = step(location, "schema")
        special = {name for name, field in fields.items() if field.is_file or field.media_types}
        if not special and not others.is_file:
            return self._schemas.converted(schema, at, uses)
        hidden = self._schemas.read_only(schema, at)
        properties = {
            name: self._part(member, where, fields[name], uses)
            for name, (member, where) in self._properties(schema, at).items()
            if name not in hidden
        }
        required = [name for name in self._required(schema, at) if name in properties]
        found: Json = {"type": "object", "properties": properties}
        if required:
            found["required"] = required
        additional, where = self._additional(schema, at)
        if additional is not None:
            found["additionalProperties"] = self._part(additional, where, others, uses)
        return found

    def _part(self, schema: Any, location: str, field: DefinedField, uses: set[str]) -> Any:
        node = mapping(self._document.followed_if_possible(schema, location)[0])
        if field.is_file:
            takes = self._files(schema, location) or _ONE_FILE
            other = self._schemas.converted(schema, location, uses) if field.or_other else {}
            return inputs.file_schema(text(node.get("description")), takes, other)
        media_type = field.media_types[0] if field.media_types else ""
        scalar = node.get("type") in inputs.SCALARS
        converted: Any = {}
        if scalar or not media_type or inputs.is_json(media_type):
            converted = self._schemas.converted(schema, location, uses)
        if not media_type or inputs.is_json(media_type):
            return converted
        described = {key: node[key] for key in ("description",) if key in node}
        written = inputs.text_schema(media_type, node.get("type"), converted)
        if scalar or "items" not in node:
            return described | written
        items = mapping(self._document.followed_if_possible(node["items"], location)[0])
        if items.get("type") in inputs.SCALARS:
            written = self._part(node["items"], step(location, "items"), field, uses)
        return {**described, "type": "array", "items": written}

    def _fields(self, kind: str, entry: Json, location: str) -> dict[str, DefinedField]:
        encodings = mapping(entry.get("encoding"))
        properties = self._properties(entry.get("schema"), step(location, "schema"))
        unlisted: dict[str, tuple[Any, str]] = {
            name: ({}, location) for name in encodings if name not in properties
        }
        return {
            name: self._field(
                kind, mapping(encodings.get(name)), step(location, "encoding", name), *property_
            )
            for name, property_ in {**properties, **unlisted}.items()
        }

    def _field(
        self, kind: str, encoding: Json, location: str, schema: Any, where: str
    ) -> DefinedField:
        """Return how a form field is written, by its Encoding Object and its schema."""
        multipart = kind == "multipart"
        self._check_headers(encoding, location, multipart=multipart)
        files = self._files(schema, where) if multipart else frozenset()
        is_file, either = bool(files), inputs.OTHER in files
        # 3.0: a style "SHALL be ignored if the request body media type is not
        # application/x-www-form-urlencoded"; 3.1 has it in multipart/form-data, too. Where there is
        # one, contentType is ignored.
        has_style = not multipart or (self._document.version == "3.1" and not is_file)
        if _STYLED & encoding.keys() and has_style:
            return DefinedField(style_of(encoding, "query", location))
        allowed = tuple(
            part.strip()
            for part in text(encoding.get("contentType")).split(",")
            if part.strip() not in ("", "*/*")
        )
        for media_type in allowed:
            if not inputs.is_media_type(media_type):
                raise DefinitionError(f"{media_type!r} is not a media type", location=location)
        if multipart:
            binary = bool(allowed) and not any(map(_is_written, allowed))
            untyped = not mapping(self._document.followed_if_possible(schema, where)[0])
            return DefinedField(None, is_file or (binary and untyped), allowed, either)
        if allowed and inputs.is_json(allowed[0]):
            return DefinedField(Style("json"))
        return DefinedField(media_types=allowed)

    def _check_headers(self, encoding: Json, location: str, *, multipart: bool) -> None:
        """Raise DefinitionError for a part that needs headers of its own, which are not sent."""
        for name, header in mapping(encoding.get("headers")).items():
            at = step(location, "headers", name)
            node = mapping(self._document.followed(header, at)[0])
            if multipart and boolean(node.get("required")) and name.lower() != "content-type":
                raise DefinitionError(
                    f"the part needs a header {name!r}, and parts are sent without headers of "
                    "their own. Make it optional, or leave the operation out",
                    location=at,
                )

    def _others(self, entry: Json, location: str) -> DefinedField:
        """Return how a part is written that the schema's properties do not name."""
        schema, where = self._additional(entry.get("schema"), step(location, "schema"))
        files = self._files(schema, where)
        return DefinedField(is_file=bool(files), or_other=inputs.OTHER in files)

    def _additional(self, schema: Any, location: str) -> tuple[Any, str]:
        for node, where in self._in_place(schema, location, ("allOf",)):
            if "additionalProperties" in node:
                return node["additionalProperties"], step(where, "additionalProperties")
        return None, location

    def _files(
        self, schema: Any, location: str, above: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Return what a field takes: ``"one"`` file, ``"several"``, ``"other"`` values, or none."""
        node, location = self._document.followed_if_possible(schema, location)
        node = mapping(node)
        if location in above:
            return frozenset()
        above |= {location}
        if "items" in node and text(node.get("type")) in ("array", ""):
            each = self._files(node["items"], step(location, "items"), above)
            return each - _ONE_FILE | _SEVERAL_FILES if each else each
        if node.get("format") == "binary":
            return _ONE_FILE
        if "contentMediaType" in node and "contentEncoding" not in node:
            return _ONE_FILE
        for key in ("anyOf", "oneOf"):
            choices = [
                self._files(choice, step(location, key, index), above)
                for index, choice in enumerate(listed(node.get(key)))
                if mapping(choice).get("type") != "null"
            ]
            if any(choices):
                mixed = () if all(choices) else (inputs.OTHER,)
                return frozenset[str]().union(*choices, mixed)
        for index, member in enumerate(listed(node.get("allOf"))):
            if found := self._files(member, step(location, "allOf", index), above):
                return found
        return frozenset()

    def _in_place(
        self, schema: Any, location: str, keys: tuple[str, ...], seen: set[str] | None = None
    ) -> Iterator[tuple[Json, str]]:
        """Yield the schemas that describe the same value, the outermost last, and their places."""
        seen = set() if seen is None else seen
        if not isinstance(schema, dict) or location in seen:
            return
        seen.add(location)
        node, where = self._document.followed_if_possible(schema, location)
        if node is not schema:
            yield from self._in_place(node, where, keys, seen)
            if self._document.version != "3.1":  # there a reference's neighbours count
                return
        for key in keys:
            for index, member in enumerate(listed(schema.get(key))):
                yield from self._in_place(member, step(location, key, index), keys, seen)
        yield schema, location

    def _properties(self, schema: Any, location: str) -> dict[str, tuple[Any, str]]:
        """Return an object's properties by name, including those of its allOf, anyOf and oneOf."""
        return {
            name: (one, step(where, "properties", name))
            for node, where in self._in_place(schema, location, ("allOf", "anyOf", "oneOf"))
            for name, one in mapping(node.get("properties")).items()
        }

    def _required(self, schema: Any, location: str) -> list[str]:
        return list(
            dict.fromkeys(
                name
                for node, _ in self._in_place(schema, location, ("allOf",))
                for name in listed(node.get("required"))
                if isinstance(name, str)
            )
        )


def _is_written(media_type: str) -> bool:
    """Return whether a caller writes values of a media type as text."""
    return inputs.is_json(media_type) or inputs.is_text(media_type)
