"""Schemas of a definition as JSON Schema 2020-12, with referenced schemas under $defs.

Each of the three formats has its own dialect. 3.1 uses 2020-12. 3.0 and 2.0 have ``nullable``, a
boolean ``exclusiveMinimum``, and references whose neighbours do not count.

A definition's schemas are converted once. A referenced schema is under ``$defs`` of each tool that
needs it, as one shared object. References that lead from a schema back to itself are dropped,
because a validator would follow them for ever. A reference that leads nowhere allows any value.
Read-only properties are left out, because no client sends them. A keyword that is wrong is left
out. Answers are not validated, because most backends answer with more than their definition.
"""

from __future__ import annotations

import re
from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi.definition import Document, Json, listed, step, steps
from agentdouble.mcp_services.openapi.dropped_references import Reference, loosen
from agentdouble.mcp_services.openapi.read_only import ReadOnly
from agentdouble.mcp_services.openapi.subschemas import LISTS, MAPS, ONE

# JSON Schema 2020-12: the other keywords of a definition (xml, discriminator, x-...) say nothing about
# the JSON of a request. A keyword with a wrong value is left out: with a schema that says less, the
# backend still decides, but with an invalid schema no client can call the tool. Patterns are kept
# for clients and backends, and never evaluated here: a foreign pattern may take for ever.
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
# A reference below these applies to the same value, so a circle of references has no end.
_IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
_ANNOTATIONS = frozenset(("title", "description", "default", "deprecated"))


_TEXTS = frozenset(
    ("title", "description", "format", "pattern", "contentMediaType", "contentEncoding")
)
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_COUNTS = frozenset(
    (
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("minContains", "maxContains"),
    )
)
_BOOLEANS = frozenset(("uniqueItems", "deprecated", "writeOnly"))
_ARRAYS = frozenset(("enum", "examples"))
_ANYTHING = frozenset(("default", "const"))

FILE: Json = {"type": "string", "contentEncoding": "base64"}

_BESIDE_REFERENCES = _ANNOTATIONS | {"nullable", "x-nullable"}


def _is_right(key: str, value: Any) -> bool:
    """Return whether the value of a keyword that contains no schemas has the right type."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key in _COUNTS:
            return value >= 0 and value == int(value)
        if key in _NUMBERS or (key == "multipleOf" and value > 0):
            return True
    return (
        key in _ANYTHING
        or (key in _TEXTS and isinstance(value, str))
        or (key in _BOOLEANS and isinstance(value, bool))
        or (key in _ARRAYS and isinstance(value, list))
    )


class Schemas:
    """Converts a document's schemas, and each referenced schema only once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        # the names of the targets of references, by place and by what is hidden in them
        self._names: dict[tuple[str, frozenset[str]], str] = {}
        self._definitions: dict[str, Any] = {}
        self._uses: dict[str, set[str]] = {}
        self._in_place: dict[str, list[tuple[str, Json]]] = {}
        # so that references do not recurse
        self._waiting: list[tuple[str, Any, str, frozenset[str]]] = []
        self._read_only = ReadOnly(document)

    def converted(self, schema: Any, location: str, uses: set[str]) -> Any:
        """Return a schema in 2020-12; add the names under $defs that it needs to ``uses``."""
        result = _Conversion(self, uses).of(schema, location, in_place=True)
        while self._waiting:
            self._define(*self._waiting.pop())
        loosen(result)
        return result

    def definitions(self, uses: set[str]) -> Json:
        """Return the definitions, by name, of ``uses`` and of all names that those refer to."""
        names, waiting = set[str](), list(uses)
        while waiting:
            name = waiting.pop()
            if name not in names:
                names.add(name)
                waiting.extend(self._uses[name])
        return {name: self._definitions[name] for name in sorted(names)}

    def break_circles(self) -> None:
        """Drop references that lead from a schema back to itself, because they have no end.

        The usual case is a base schema that lists its children, each of which refers to the base.
        """
        done: set[str] = set()
        for name in self._definitions:
            self._break(name, done, set())
        for schema in self._definitions.values():
            loosen(schema)

    def _break(self, name: str, done: set[str], above: set[str]) -> None:
        if name in done:
            return
        above.add(name)
        for target, reference in self._in_place.get(name, []):
            if target in above:
                reference.clear()  # the empty schema allows any value
            else:
                self._break(target, done, above)
        above.discard(name)
        done.add(name)

    def read_only(self, schema: Any, location: str) -> frozenset[str]:
        """Return the names of an object's read-only properties."""
        return self._read_only.names(schema, location)

    def name_of(
        self, reference: str, location: str, hidden: frozenset[str] = frozenset()
    ) -> str | None:
        """Return the name under $defs for a reference's target without its ``hidden`` properties.

        Returns None, and warns, if the reference leads nowhere.
        """
        try:
            if self._document.version == "3.1":  # a reference's neighbours count
                schema, where = self._document.target(reference, location), reference
            else:
                schema, where = self._document.followed({"$ref": reference}, location)
        except DefinitionError as error:
            self._document.warn(reference, error)
            return None
        hidden = self._read_only.needed(schema, where, hidden)
        name = self._names.get((where, hidden))
        if name is None:
            name = self._names[where, hidden] = self._free_name(where)
            self._definitions[name] = {}
            self._waiting.append((name, schema, where, hidden))
        return name

    def _define(self, name: str, schema: Any, where: str, hidden: frozenset[str]) -> None:
        uses = self._uses[name] = set()
        edges = self._in_place[name] = []
        conversion = _Conversion(self, uses, edges)
        self._definitions[name] = conversion.of(schema, where, in_place=True, hidden=hidden)

    def _free_name(self, where: str) -> str:
        last = (steps(where) or ["Document"])[-1]
        base = name = re.sub(r"[^A-Za-z0-9._-]", "_", last) or "_"
        number = 1
        while name in self._definitions:
            number += 1
            name = f"{base}_{number}"
        return name

    @property
    def is_2020(self) -> bool:
        return self._document.version == "3.1"


class _Conversion:
    """The conversion of one schema and of everything in it."""

    def __init__(
        self, schemas: Schemas, uses: set[str], edges: list[tuple[str, Json]] | None = None
    ) -> None:
        self._schemas = schemas
        self._uses = uses
        self._edges = [] if edges is None else edges

    def of(
        self, schema: Any, location: str, *, in_place: bool, hidden: frozenset[str] = frozenset()
    ) -> Any:
        """Return a schema in 2020-12, without the properties that are ``hidden`` elsewhere."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, location, in_place, hidden)
        hidden |= self._schemas.read_only(schema, location)
        result = _plain(schema)
        result.update(self._below(schema, location, in_place, hidden))
        names = dict.fromkeys(_names(schema.get("required")))
        if sent := [name for name in names if name not in hidden]:
            result["required"] = sent
        if isinstance(schema.get("dependentRequired"), dict):
            result["dependentRequired"] = {
                name: [each for each in dict.fromkeys(_names(needed)) if each not in hidden]
                for name, needed in schema["dependentRequired"].items()
            }
        return _nullable(schema, result)

    def _reference(
        self, schema: Json, location: str, in_place: bool, hidden: frozenset[str]
    ) -> Json:
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        if not self._schemas.is_2020:
            siblings = {key: siblings[key] for key in siblings if key in _BESIDE_REFERENCES}
        elif siblings:
            hidden |= self._schemas.read_only(schema, location)
        extra = self.of(siblings, location, in_place=in_place, hidden=hidden) if siblings else {}
        name = self._schemas.name_of(schema["$ref"], location, hidden)
        if name is None:
            return (
                {**extra, "allOf": [*extra.get("allOf", []), Reference()]} if extra else Reference()
            )
        self._uses.add(name)
        reference = Reference({"$ref": f"#/$defs/{name}"})
        if in_place:
            self._edges.append((name, reference))
        if _is_nullable(schema):
            return {**extra, "anyOf": [reference, {"type": "null"}]}
        if not extra:
            return reference
        if in_place:  # if the reference is dropped, its neighbours must stay
            return {**extra, "allOf": [*extra.get("allOf", []), reference]}
        return {**extra, **reference}

    def _below(self, schema: Json, location: str, in_place: bool, hidden: frozenset[str]) -> Json:
        result: Json = {}
        for key, value in schema.items():
            same = in_place and key in _IN_PLACE
            inside = hidden if key in _IN_PLACE else frozenset[str]()
            at = step(location, key)
            if key in LISTS and isinstance(value, list) and value:
                result[key] = self._list(value, at, same, inside)
            elif key in MAPS and isinstance(value, dict):
                result[key] = {
                    name: self.of(member, step(at, name), in_place=same, hidden=inside)
                    for name, member in value.items()
                    if key != "properties" or name not in hidden
                }
            elif key == "items" and isinstance(value, list):
                result["prefixItems"] = self._list(value, at, False, inside)
            elif key in ONE:
                result[key] = self.of(value, at, in_place=same, hidden=inside)
        return {key: value for key, value in result.items() if value != []}

    def _list(self, value: Any, location: str, same: bool, hidden: frozenset[str]) -> list[Any]:
        return [
            self.of(item, step(location, index), in_place=same, hidden=hidden)
            for index, item in enumerate(value)
        ]


def _names(value: Any) -> list[str]:
    return [name for name in listed(value) if isinstance(name, str)]


def _plain(schema: Json) -> Json:
    """Return the valid keywords whose values contain no schemas."""
    result = {key: value for key, value in schema.items() if _is_right(key, value)}
    _bounds(schema, result)
    if "example" in schema and "examples" not in result:
        result["examples"] = [schema["example"]]
    written = schema.get("type")
    if written == "file":
        return {**result, **FILE}
    types = written if isinstance(written, list) else [written]
    valid = [name for name in types if isinstance(name, str) and name in _TYPES]
    if valid and len(valid) == len(types):
        result["type"] = list(dict.fromkeys(valid)) if isinstance(written, list) else valid[0]
    return result


def _bounds(schema: Json, result: Json) -> None:
    """Convert the booleans that exclude a bound in 2.0 and 3.0 into numbers."""
    for excludes, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(excludes) is True and bound in result:
            result[excludes] = result.pop(bound)


def _is_nullable(schema: Json) -> bool:
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def _nullable(schema: Json, result: Json) -> Json:
    if not _is_nullable(schema):
        return result
    if "enum" in result and None not in result["enum"]:
        result["enum"] = [*result["enum"], None]
    if any(key in result for key in ("allOf", "anyOf", "oneOf")):
        outside = {key: result.pop(key) for key in _ANNOTATIONS if key in result}
        return {**outside, "anyOf": [result, {"type": "null"}]}
    if "type" in result:
        types = result["type"] if isinstance(result["type"], list) else [result["type"]]
        result["type"] = [*types, *(["null"] if "null" not in types else [])]
    return result
