"""Schemas of a definition as JSON Schema 2020-12, with referenced schemas under $defs.

Each of the three formats has its own dialect. 3.1 uses 2020-12. 3.0 and 2.0 have ``nullable``, a
boolean ``exclusiveMinimum``, and references whose neighbours do not count.

A definition's schemas are converted once. A referenced schema is under ``$defs`` of each tool that
needs it, as one shared object. References that lead from a schema back to itself are dropped,
because a validator would follow them for ever. Read-only properties are left out, because no client
sends them. A keyword that is wrong is left out, and is among the document's slips. Answers are not validated, because most backends answer with more than their definition.
"""

from __future__ import annotations

import re
import reprlib
from typing import Any

from agentdouble.mcp_services.openapi import keywords
from agentdouble.mcp_services.openapi.definition import Json
from agentdouble.mcp_services.openapi.documents import Document, ReadOnly, step, steps

FILE: Json = {"type": "string", "contentEncoding": "base64"}
_NOTHING: frozenset[str] = frozenset()


class Schemas:
    """Converts a document's schemas, and each referenced schema only once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._read_only = ReadOnly(document)
        self._names: dict[str, str] = {}  # of references' targets, by place
        self._definitions: dict[str, Any] = {}
        self._uses: dict[str, set[str]] = {}
        self._in_place: dict[str, list[tuple[str, Json]]] = {}
        self._waiting: list[tuple[str, Any, str]] = []  # so that references do not recurse
        self.slips = document.slips

    def converted(self, schema: Any, place: str, uses: set[str]) -> Any:
        """Return a schema in 2020-12; add the names under $defs that it needs to ``uses``."""
        found = _Conversion(self, uses).of(schema, place, _NOTHING, in_place=True)
        while self._waiting:
            self._define(*self._waiting.pop())
        return found

    def definitions(self, uses: set[str]) -> Json:
        """Return everything that belongs under $defs for the names in ``uses``, by name."""
        found: set[str] = set()
        waiting = list(uses)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self._uses[name])
        return {name: self._definitions[name] for name in sorted(found)}

    def break_circles(self) -> None:
        """Drop references that lead from a schema back to itself, because they have no end.

        The usual case is a base schema that lists its children, each of which refers to the base.
        """
        done: set[str] = set()
        for name in self._definitions:
            self._break(name, done, set())

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

    def name_of(self, reference: str, place: str) -> str:
        """Return the name under $defs for a reference's target."""
        schema, where = self._document.followed({"$ref": reference}, place)
        if self._document.version == "3.1":  # a reference's neighbours count
            schema, where = self._document.target(reference, place), reference
        name = self._names.get(where)
        if name is None:
            name = self._names[where] = self._free_name(where)
            self._definitions[name] = {}
            self._waiting.append((name, schema, where))
        return name

    def _define(self, name: str, schema: Any, where: str) -> None:
        uses = self._uses[name] = set()
        edges = self._in_place[name] = []
        conversion = _Conversion(self, uses, edges)
        self._definitions[name] = conversion.of(schema, where, _NOTHING, in_place=True)

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

    def read_only(self, schema: Json, place: str) -> frozenset[str]:
        """Return the names of an object's properties that are not sent."""
        return self._read_only.names(schema, place)


class _Conversion:
    """The conversion of one schema and of everything in it."""

    def __init__(
        self, schemas: Schemas, uses: set[str], edges: list[tuple[str, Json]] | None = None
    ) -> None:
        self._schemas = schemas
        self._uses = uses
        self._edges = [] if edges is None else edges

    def of(self, schema: Any, place: str, hidden: frozenset[str], *, in_place: bool) -> Any:
        """Return a schema in 2020-12; ``hidden`` are read-only properties of enclosing schemas."""
        if isinstance(schema, bool):
            return schema
        if schema is None:
            return {}
        if not isinstance(schema, dict):
            self._slip(place, schema)
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, place, in_place)
        hidden = hidden | self._schemas.read_only(schema, place)
        found = self._plain(schema, place)
        found.update(self._below(schema, place, hidden, in_place))
        self._required(found, schema, hidden, place)
        return _nullable(schema, found)

    def _slip(self, place: str, value: Any) -> None:
        """Note a value that is left out."""
        self._schemas.slips[place] = f"{reprlib.repr(value)} is not valid here"

    def _reference(self, schema: Json, place: str, in_place: bool) -> Json:
        name = self._schemas.name_of(schema["$ref"], place)
        self._uses.add(name)
        reference = {"$ref": f"#/$defs/{name}"}
        if in_place:
            self._edges.append((name, reference))
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if not self._schemas.is_2020:
            rest = {key: rest[key] for key in rest if key in _BESIDE_REFERENCES}
        beside = self.of(rest, place, _NOTHING, in_place=in_place) if rest else {}
        if _is_nullable(schema):
            return {**beside, "anyOf": [reference, {"type": "null"}]}
        if not beside:
            return reference
        if in_place:  # if the reference is dropped, its neighbours must stay
            return {**beside, "allOf": [*beside.get("allOf", []), reference]}
        return {**beside, **reference}

    def _plain(self, schema: Json, place: str) -> Json:
        found = {}
        for key, value in schema.items():
            if key not in keywords.PLAIN:
                continue
            if keywords.PLAIN[key](value):
                found[key] = value
            elif self._schemas.is_2020 or not (key in _EXCLUDES and isinstance(value, bool)):
                self._slip(step(place, key), value)
        _bounds(schema, found)
        if "example" in schema and "examples" not in found:
            found["examples"] = [schema["example"]]
        return self._typed(schema, found, place)

    def _typed(self, schema: Json, found: Json, place: str) -> Json:
        written = schema.get("type")
        if written is None:
            return found
        if written == "file":
            return {**found, **FILE}
        types = written if isinstance(written, list) else [written]
        known = [one for one in types if isinstance(one, str) and one in keywords.TYPES]
        if known and len(known) == len(types):
            found["type"] = list(dict.fromkeys(known)) if isinstance(written, list) else known[0]
        else:
            self._slip(step(place, "type"), written)
        return found

    def _required(self, found: Json, schema: Json, hidden: frozenset[str], place: str) -> None:
        """Set the required properties, without those that are not sent."""
        required = schema.get("required", [])
        names = (
            [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
        )
        different = list(dict.fromkeys(names))
        if required != different:
            self._schemas.slips[step(place, "required")] = (
                f"{reprlib.repr(required)} is no list of different names"
            )
        sent = [one for one in different if one not in hidden]
        if sent:
            found["required"] = sent

    def _below(self, schema: Json, place: str, hidden: frozenset[str], in_place: bool) -> Json:
        found: Json = {}
        for key, value in schema.items():
            same = in_place and key in keywords.IN_PLACE
            passed = hidden if key == "allOf" else _NOTHING
            at = step(place, key)
            if key in keywords.LISTS and isinstance(value, list) and value:
                found[key] = self._list(value, at, passed, same)
            elif key in keywords.MAPS and isinstance(value, dict):
                found[key] = self._map(value, at, same, hidden if key == "properties" else _NOTHING)
            elif key in keywords.LISTS or key in keywords.MAPS:
                self._slip(at, value)
            elif key == "items" and isinstance(value, list):
                self._schemas.slips[at] = "a list of schemas is read as prefixItems"
                found["prefixItems"] = self._list(value, at, _NOTHING, False)
            elif key in keywords.ONE:
                found[key] = self.of(value, at, _NOTHING, in_place=same)
        return {key: value for key, value in found.items() if value != []}

    def _list(self, value: Any, place: str, hidden: frozenset[str], same: bool) -> list[Any]:
        return [
            self.of(one, step(place, index), hidden, in_place=same)
            for index, one in enumerate(value)
        ]

    def _map(self, value: Json, place: str, same: bool, hidden: frozenset[str]) -> Json:
        return {
            name: self.of(one, step(place, name), _NOTHING, in_place=same)
            for name, one in value.items()
            if name not in hidden
        }


_EXCLUDES = ("exclusiveMinimum", "exclusiveMaximum")
_BESIDE_REFERENCES = keywords.ANNOTATIONS | {"nullable", "x-nullable"}


def _bounds(schema: Json, found: Json) -> None:
    """Convert the booleans that exclude a bound in 2.0 and 3.0 into numbers."""
    for excludes, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(excludes) is True and bound in found:
            found[excludes] = found.pop(bound)


def _is_nullable(schema: Json) -> bool:
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def _nullable(schema: Json, found: Json) -> Json:
    if not _is_nullable(schema):
        return found
    if "enum" in found and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    if any(key in found for key in ("allOf", "anyOf", "oneOf")):
        outside = {key: found.pop(key) for key in keywords.ANNOTATIONS if key in found}
        return {**outside, "anyOf": [found, {"type": "null"}]}
    if "type" in found:
        types = found["type"] if isinstance(found["type"], list) else [found["type"]]
        found["type"] = [*types, *(["null"] if "null" not in types else [])]
    return found
